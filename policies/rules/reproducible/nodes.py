"""Versions of nodes and control planes. Those of charts and add-ons: kubernetes/chart_versions.py."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, is_unknown
from policies.rules.pools import NODE_GROUP, TEMPLATE
from policies.rules.properties import raw
from policies.stack import Stack

_CLUSTER = "aws:eks/cluster:Cluster"
# A launch template can name an image by a parameter that changes (EC2 User Guide, "Use a Systems Manager
# parameter to find an AMI"), and a node group a version of its template by one of these words.
_PARAMETER, _WORDS = "resolve:ssm:", ("$Latest", "$Default")


@CATALOG.rule_around(
    "MLS-REP-03",
    "medium",
    (_CLUSTER, NODE_GROUP, TEMPLATE),
    "A node that starts tomorrow with another kernel, driver or NCCL makes one job run on two systems.",
    "Set version of the cluster, releaseVersion of the node group, and one image in a launch template.",
)
def versions_are_pinned(made: Resource, stack: Stack) -> Iterator[Violation]:
    """Control planes and nodes run a version that the program names."""
    if made.asked is None:
        raise NotApplicableError("the source has no inputs of the program")
    if made.kind == _CLUSTER:
        if not made.asked.get("version"):
            yield Violation("EKS chooses its version", "version", "Set version.")
    elif made.kind == NODE_GROUP:
        yield from _group(made, stack)
    elif not made.asked.get("imageId"):
        raise NotApplicableError("it names no image")
    elif str(made.asked["imageId"]).startswith(_PARAMETER):
        yield Violation(f"{made.asked['imageId']} may be another image tomorrow", "imageId")


def _group(group: Resource, stack: Stack) -> Iterator[Violation]:
    # The default is the latest release (EKS API Reference, CreateNodegroup, releaseVersion).
    asked = group.asked or {}
    custom = asked.get("amiType") == "CUSTOM"  # then the launch template names the image
    if not custom and not asked.get("releaseVersion"):
        yield Violation("EKS chooses the release of its image", "releaseVersion", "Set releaseVersion.")
    version = raw(asked.get("launchTemplate") or {}, "version")
    if is_unknown(version):
        # From a template of the stack it is a number; from any other source it is undetermined.
        stack.referred(group, version, "launchTemplate", TEMPLATE)
    elif version in _WORDS:
        yield Violation(f"{version} may be another template tomorrow", "launchTemplate.version")
