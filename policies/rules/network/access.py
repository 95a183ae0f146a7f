"""Who reaches a stack from outside: the API of the cluster, and open ports."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.reading import is_world

_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_INGRESS, _GROUP = (
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:ec2/securityGroup:SecurityGroup",
)
_RULE, _DEFAULT = (
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
)
_FIREWALL = "gcp:compute/firewall:Firewall"
_PORTS = {22: "SSH", 5000: "MLflow", 6443: "the Kubernetes API", 8265: "Ray"}


@CATALOGUE.rule(
    About(
        "MLS-NET-05",
        "high",
        (_EKS, _GKE),
        "Whoever reaches the API of a cluster can try stolen credentials and unpatched flaws on it.",
        "Make the endpoint private, or name the ranges of your offices and VPN.",
        ("FSBP EKS.1", "CKV_AWS_38", "CKV_AWS_39", "CIS EKS 5.4.1", "CIS EKS 5.4.2"),
    )
)
def the_api_is_not_for_everybody(cluster: Resource) -> Iterator[Violation]:
    """The API of a cluster is private, or open to named ranges only."""
    if cluster.kind == _EKS:
        yield from _open_eks(cluster.props)
    else:
        yield from _open_gke(cluster.props)


def _open_eks(props: Any) -> Iterator[Violation]:
    network = props.get("vpcConfig") or {}
    # EKS opens the public endpoint to everybody where nothing is said (EKS API Reference, VpcConfigRequest).
    if network.get("endpointPublicAccess") is False:
        return
    ranges = network.get("publicAccessCidrs") or ["0.0.0.0/0"]
    for cidr in ranges:
        if is_world(cidr):
            yield Violation(f"the public endpoint is open to {cidr}", "vpcConfig.publicAccessCidrs")


def _open_gke(props: Any) -> Iterator[Violation]:
    private = props.get("privateClusterConfig") or {}
    if private.get("enablePrivateEndpoint") is True:
        return
    named = props.get("masterAuthorizedNetworksConfig")
    if not named:
        yield Violation("every address reaches the endpoint", "masterAuthorizedNetworksConfig")
        return
    for index, block in enumerate(named.get("cidrBlocks") or ()):
        if is_world(block.get("cidrBlock")):
            path = f"masterAuthorizedNetworksConfig.cidrBlocks[{index}].cidrBlock"
            yield Violation(f"the endpoint is open to {block['cidrBlock']}", path)


@CATALOGUE.rule(
    About(
        "MLS-NET-07",
        "critical",
        (_INGRESS, _RULE, _GROUP, _DEFAULT, _FIREWALL),
        "Scanners find open ports within minutes; MLflow and Ray run what they are sent, by whomever.",
        "Name the ranges that need the port, or reach it by a port-forward.",
        ("CKV_AWS_24",),
    )
)
def no_administration_from_everywhere(opening: Resource) -> Iterator[Violation]:
    """No port for administration, MLflow or Ray is open to the world."""
    for path, cidr, low, high in _openings(opening):
        if is_world(cidr):
            for port, what in _PORTS.items():
                if low <= port <= high:
                    yield Violation(f"port {port} ({what}) is open to {cidr}", path)


_Opening = tuple[str, Any, float, float]


def _openings(resource: Resource) -> Iterator[_Opening]:
    """(path, range, lowest port, highest port) that a resource lets in."""
    props = resource.props
    if resource.kind == _INGRESS:
        yield from _of_rule("", props, [props.get("cidrIpv4"), props.get("cidrIpv6")], "ipProtocol")
    elif resource.kind == _RULE:
        if props.get("type") == "ingress":
            yield from _of_rule("", props, _ranges(props), "protocol")
    elif resource.kind == _FIREWALL:
        yield from _of_firewall(resource)
    else:
        for path, rule in resource.items("ingress"):
            yield from _of_rule(path, rule, _ranges(rule), "protocol")


def _ranges(rule: Any) -> list[Any]:
    return [*(rule.get("cidrBlocks") or ()), *(rule.get("ipv6CidrBlocks") or ())]


def _of_rule(path: str, rule: Any, ranges: list[Any], protocol: str) -> Iterator[_Opening]:
    every = str(rule.get(protocol)) in ("-1", "all")
    if not every and str(rule.get(protocol)) not in ("tcp", "6"):
        return
    low, high = (0, 65535) if every else (rule.get("fromPort") or 0, rule.get("toPort") or 0)
    for cidr in ranges:
        if cidr:
            yield path, cidr, low, high


def _of_firewall(firewall: Resource) -> Iterator[_Opening]:
    props = firewall.props
    if props.get("direction", "INGRESS") != "INGRESS" or props.get("disabled") is True:
        raise NotApplicableError("it lets nothing in")
    for path, allowed in firewall.items("allows"):
        if str(allowed.get("protocol")).lower() in ("tcp", "6", "all"):
            for ports in allowed.get("ports") or ["0-65535"]:
                low, _, high = str(ports).partition("-")
                for cidr in props.get("sourceRanges") or ():
                    yield path, cidr, int(low), int(high or low)
