"""Node groups with cluster placement, in one zone, or with EFA, whose security group is open to itself."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.network.openings import GROUP, openings
from rehearsal.aws.rules.reading import EFA_DEVICES, items, subnets, template_of, zones
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_GROUP = "aws:eks/nodeGroup:NodeGroup"
_GUIDE = "EC2 User Guide, create-efa.md (security group); reference: AWS PCS User Guide, EFA security group"


@BOOK.rule_around(
    "AWS-EFA-002", _GROUP, source="botocore 1.44.5 ec2/2016-11-15 CreatePlacementGroup", advice=True
)
def cluster_placement_in_one_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A cluster placement group lies within one zone."""
    template, spread = template_of(site, inputs), zones(subnets(site, inputs.get("subnetIds")))
    if template is None or len(spread) < 2:
        return
    name = at(template.inputs, "placement.groupName")
    group = site.find(name, "ec2/placementGroup:PlacementGroup")
    if group and group.outputs.get("strategy") == "cluster":
        yield Violation(
            "subnetIds",
            f"cluster placement works within one zone, but the subnets are in {', '.join(spread)}",
            "Give the node group the subnets of one zone.",
            "InvalidParameterException",
        )


@BOOK.rule_around("AWS-EFA-003", _GROUP, source=_GUIDE, advice=True)
def efa_group_open_inwards(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A security group of EFA devices admits all traffic from itself, by its id."""
    yield from _closed(inputs, site, "ingress", "inbound", "from")


@BOOK.rule_around("AWS-EFA-004", _GROUP, source=_GUIDE, advice=True)
def efa_group_open_outwards(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A security group of EFA devices lets out all traffic to itself, by its id: 0.0.0.0/0 is not enough."""
    yield from _closed(inputs, site, "egress", "outbound", "to")


def _closed(
    inputs: Properties, site: AwsContext, direction: str, word: str, preposition: str
) -> Iterator[Violation]:
    """One violation for the first EFA device none of whose groups is open to itself in that direction."""
    template = template_of(site, inputs)
    if template is None or site.preview:
        return
    for path, interface in items(template.inputs, "networkInterfaces"):
        given = interface.get("securityGroups")
        ids = given if isinstance(given, list) else []
        found = [site.find(value, GROUP) for value in ids]
        if interface.get("interfaceType") not in EFA_DEVICES or None in found or not found:
            continue
        if not any(group and _open(site, group, direction) for group in found):
            yield Violation(
                "launchTemplate",
                f"no security group of {path} allows all {word} traffic {preposition} itself, as EFA needs",
                "Add a rule with protocol -1 and the group's own id, and let the node group depend on it.",
                "InvalidParameterException",
            )
            return


def _open(site: AwsContext, group: Record, direction: str) -> bool:
    # The cluster's own group has no program: EKS makes it open to itself.
    return not group.urn or any(one.own and one.everything for one in openings(site, group, direction))
