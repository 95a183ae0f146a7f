"""EKS clusters, access, add-ons and pod identity."""

import difflib
import re
from collections.abc import Iterator

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import text, trusts
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_CLUSTER, _ADDON = "aws:eks/cluster:Cluster", "aws:eks/addon:Addon"
_ENTRY = "aws:eks/accessEntry:AccessEntry"
_ACCESS = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
_POD_IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
_INVALID = "InvalidParameterException"
_ENTRIES = "botocore 1.44.5 eks/2017-11-01 CreateAccessEntryRequest"
_TRUST = "hashicorp/terraform-provider-aws issue 41483"
_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
# The marketplace has more add-ons than the catalog: only close names count as misspelled.
_SLIP = 0.8
# Add-ons that EKS installs by default.
_SELF_MANAGED = ("vpc-cni", "kube-proxy", "coredns")


@BOOK.rule("AWS-EKS-001", _CLUSTER, source="catalog: awsdocs/amazon-eks-user-guide kubernetes-versions.adoc")
def version_is_supported(inputs: Properties) -> Iterator[Violation]:
    """The Kubernetes version is one that EKS runs, or newer than the catalog."""
    version, offered = text(inputs.get("version")), facts.catalog().eks.versions
    newest = max(int(one.partition(".")[2]) for one in offered)
    newer = version and re.fullmatch(r"1\.\d+", version) and int(version.partition(".")[2]) > newest
    if version is not None and version not in offered and not newer:
        yield Violation(
            "version", f"unsupported Kubernetes version {version}", f"Supported are {', '.join(offered)}."
        )


@BOOK.rule_around(
    "AWS-EKS-002", _CLUSTER, source="awsdocs/amazon-eks-user-guide latest/ug/clusters/update-cluster.adoc"
)
def one_minor_version_up(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A cluster is updated one minor version at a time."""
    before = site.current("eks/cluster:Cluster")
    new, old = text(inputs.get("version")), text(before.outputs.get("version")) if before else None
    if new is None or old is None or not all(re.fullmatch(r"1\.\d+", version) for version in (new, old)):
        return
    step = int(new.partition(".")[2]) - int(old.partition(".")[2])
    if step not in (0, 1):
        yield Violation(
            "version",
            f"Unsupported Kubernetes minor version update from {old} to {new}",
            "Go up one minor version at a time.",
            _INVALID,
        )


@BOOK.rule_around(
    "AWS-EKS-003", _CLUSTER, source="eksworkshop.com, security/cluster-access-management/managing"
)
def authentication_goes_one_way(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The authentication mode changes from CONFIG_MAP over both to API, and not back."""
    before, path = site.current("eks/cluster:Cluster"), "accessConfig.authenticationMode"
    old, new = at(before.outputs, path) if before else None, at(inputs, path)
    if old in _MODES and new in _MODES and _MODES.index(new) - _MODES.index(old) not in (0, 1):
        yield Violation(
            path,
            f"Unsupported authentication mode update from {old} to {new}",
            f"It goes {' -> '.join(_MODES)}, one step at a time.",
            _INVALID,
        )


def assumable(
    inputs: Properties, site: AwsContext, path: str, called: str, service: str
) -> Iterator[Violation]:
    """Violation when the role at `path`, described as `called`, does not allow a service to assume it."""
    role = site.find(inputs.get(path), "iam/role:Role")
    if role and not trusts(role, service):
        yield Violation(
            path,
            f"Following required service principals [{service}] were not found in the trust relationships "
            f"of {called} {inputs[path]}",
            f"Let {service} do sts:AssumeRole.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-004", _CLUSTER, source="aws/amazon-cloudwatch-agent-test issue 220")
def cluster_role_trusts_eks(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The cluster role lets EKS assume it."""
    yield from assumable(inputs, site, "roleArn", "clusterRole", "eks.amazonaws.com")


@BOOK.rule_around(
    "AWS-EKS-005", _ENTRY, _ACCESS, source="cartography-cncf/cartography cartography/intel/aws/eks.py"
)
def entries_need_the_api_mode(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Access entries work only on clusters that authenticate by the API."""
    cluster = site.find(inputs.get("clusterName"), "eks/cluster:Cluster")
    if cluster and at(cluster.outputs, "accessConfig.authenticationMode") == "CONFIG_MAP":
        yield Violation(
            "clusterName",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] "
            "to perform this operation",
            "Set accessConfig.authenticationMode of the cluster.",
            "InvalidRequestException",
        )


@BOOK.rule("AWS-EKS-007", _ENTRY, source=_ENTRIES)
def entry_is_no_session(inputs: Properties) -> Iterator[Violation]:
    """An access entry names an IAM principal, not a session of STS."""
    principal = text(inputs.get("principalArn")) or ""
    if re.match(r"arn:aws[a-z-]*:sts:", principal):
        yield Violation("principalArn", f"{principal} is a session", "Use the ARN of its role.")


@BOOK.rule("AWS-EKS-008", _ENTRY, source=_ENTRIES)
def node_entries_are_roles(inputs: Properties) -> Iterator[Violation]:
    """Access entries of nodes name roles."""
    kind, principal = inputs.get("type", "STANDARD"), text(inputs.get("principalArn")) or ""
    if known(kind) and kind != "STANDARD" and ":user/" in principal:
        yield Violation("principalArn", f"type {kind} needs a role, not {principal}")


@BOOK.rule_around(
    "AWS-EKS-011",
    _ACCESS,
    source="hashicorp/terraform-provider-aws internal/service/eks/access_policy_association.go",
)
def access_needs_an_entry(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A policy is associated with a principal that has an access entry."""
    principal, cluster = inputs.get("principalArn"), inputs.get("clusterName")
    if site.preview or not known(principal):
        return
    entries = site.all("eks/accessEntry:AccessEntry")
    if not any(
        (one.outputs.get("principalArn"), one.outputs.get("clusterName")) == (principal, cluster)
        for one in entries
    ):
        yield Violation(
            "principalArn",
            f"The specified principalArn could not be found: {principal} has no access entry",
            "Create the access entry first and let the association depend on it.",
            "ResourceNotFoundException",
        )


@BOOK.rule_around("AWS-EKS-012", _ACCESS, source=_ENTRIES)
def nodes_take_no_access_policy(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Access entries of nodes take no access policy."""
    for entry in site.all("eks/accessEntry:AccessEntry"):
        same = all(entry.outputs.get(name) == inputs.get(name) for name in ("principalArn", "clusterName"))
        if same and entry.outputs.get("type") in ("EC2_LINUX", "EC2_WINDOWS"):
            yield Violation(
                "principalArn",
                f"its access entry has type {entry.outputs['type']}, which takes no access policy",
                "Use an entry of type STANDARD.",
                "InvalidRequestException",
            )


@BOOK.rule(
    "AWS-EKS-013",
    _ADDON,
    source="catalog: awsdocs/amazon-eks-user-guide workloads-add-ons-available-eks.adoc",
)
def addon_name(inputs: Properties) -> Iterator[Violation]:
    """An add-on's name is not a misspelling of a known one."""
    name, offered = text(inputs.get("addonName")), facts.catalog().eks.addons
    if name is not None and name not in offered:
        near = difflib.get_close_matches(name, offered, n=1, cutoff=_SLIP)
        if near:
            yield Violation("addonName", f"Addon {name} is not supported", f"did you mean {near[0]}?")


@BOOK.rule_around("AWS-EKS-014", _POD_IDENTITY, source=_TRUST)
def pod_role_trusts_pods(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The role of a pod identity lets pods.eks.amazonaws.com assume it and tag the session."""
    role = site.find(inputs.get("roleArn"), "iam/role:Role")
    actions = ["sts:AssumeRole"] + ([] if inputs.get("disableSessionTags") is True else ["sts:TagSession"])
    if role and not all(trusts(role, "pods.eks.amazonaws.com", action) for action in actions):
        yield Violation(
            "roleArn",
            "Trust policy of the role provided is invalid",
            f"Let pods.eks.amazonaws.com do {' and '.join(actions)}.",
            _INVALID,
        )


@BOOK.rule_around("AWS-EKS-015", _ADDON, source=_TRUST)
def addon_role_trusts_pods(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The role of an add-on's pod identity lets pods.eks.amazonaws.com assume it and tag the session."""
    given = inputs.get("podIdentityAssociations")
    for index, association in enumerate(given if isinstance(given, list) else []):
        role = site.find(at(association, "roleArn"), "iam/role:Role")
        if role and not trusts(role, "pods.eks.amazonaws.com"):
            yield Violation(
                f"podIdentityAssociations[{index}].roleArn",
                "Trust policy of the role provided is invalid",
                "Let pods.eks.amazonaws.com do sts:AssumeRole and sts:TagSession.",
                _INVALID,
            )


@BOOK.rule_around(
    "AWS-EKS-016",
    _ADDON,
    source="hashicorp/terraform-provider-aws internal/service/eks/addon.go (resourceAddonCreate) and "
    "issue 20440; nebari-dev/nebari issue 2537; aws/amazon-network-policy-controller-k8s issue 200",
    advice=True,
)
def addon_takes_over(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An add-on that EKS has installed is adopted only where its settings may be replaced."""
    cluster, name = site.find(inputs.get("clusterName"), "eks/cluster:Cluster"), inputs.get("addonName")
    if name not in _SELF_MANAGED or inputs.get("resolveConflictsOnCreate", "NONE") != "NONE":
        return
    installed = cluster is not None and cluster.outputs.get("bootstrapSelfManagedAddons") is not False
    if installed and site.current("eks/addon:Addon") is None:
        yield Violation(
            "resolveConflictsOnCreate",
            f"EKS has installed {name} already, and where a setting of it is another one, the add-on fails: "
            "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: ConfigurationConflict: "
            "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode",
            "Set it to OVERWRITE, or bootstrapSelfManagedAddons of the cluster to false.",
        )
