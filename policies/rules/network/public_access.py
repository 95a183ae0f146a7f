"""Access from the internet: the API of a cluster, and open ports."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.ip_ranges import is_world
from policies.rules.network.security_groups import DEFAULT, GROUP, INGRESS, RULE, OpenPorts, open_ports

_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_FIREWALL = "gcp:compute/firewall:Firewall"
_PORTS = {22: "SSH", 5000: "MLflow", 6443: "the Kubernetes API", 8265: "Ray"}


@CATALOG.rule(
    "MLS-NET-05",
    "high",
    (_EKS, _GKE),
    "An attacker who reaches the API of a cluster can use stolen credentials and unpatched flaws.",
    "Make the endpoint private, or name the ranges of your offices and VPN.",
    ("FSBP EKS.1", "CKV_AWS_38", "CKV_AWS_39", "CIS EKS 5.4.1", "CIS EKS 5.4.2"),
)
def the_api_is_restricted(cluster: Resource) -> Iterator[Violation]:
    """The API of a cluster is private, or open to named ranges only."""
    if cluster.kind == _EKS:
        yield from _open_eks(cluster.props)
    else:
        yield from _open_gke(cluster.props)


def _open_eks(props: Any) -> Iterator[Violation]:
    network = props.get("vpcConfig") or {}
    # EKS opens the public endpoint to all by default (EKS API Reference, VpcConfigRequest).
    if network.get("endpointPublicAccess") is False:
        return
    ranges = network.get("publicAccessCidrs") or ["0.0.0.0/0"]
    for cidr in ranges:
        if is_world(cidr):
            yield Violation(f"the public endpoint is open to {cidr}", "vpcConfig.publicAccessCidrs")


def _open_gke(props: Any) -> Iterator[Violation]:
    ends = (props.get("controlPlaneEndpointsConfig") or {}).get("ipEndpointsConfig") or {}
    private = props.get("privateClusterConfig") or {}
    if ends.get("enabled") is False or ends.get("enablePublicEndpoint") is False:
        return
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


@CATALOG.rule(
    "MLS-NET-07",
    "critical",
    (INGRESS, RULE, GROUP, DEFAULT, _FIREWALL),
    "Scanners find open ports within minutes; MLflow and Ray execute code from any client.",
    "Name the ranges that need the port, or use a port-forward.",
    ("CKV_AWS_24",),
)
def no_administration_ports_are_public(resource: Resource) -> Iterator[Violation]:
    """No port for administration, MLflow or Ray is open to the world."""
    for opening in _ports_of(resource):
        for cidr in filter(is_world, opening.ranges):
            for port in filter(opening.admits, _PORTS):
                yield Violation(f"port {port} ({_PORTS[port]}) is open to {cidr}", opening.path)


def _ports_of(resource: Resource) -> Iterator[OpenPorts]:
    if resource.kind == _FIREWALL:
        yield from _of_firewall(resource)
    else:
        yield from open_ports(resource, "ingress")


def _of_firewall(firewall: Resource) -> Iterator[OpenPorts]:
    props = firewall.props
    if props.get("direction", "INGRESS") != "INGRESS" or props.get("disabled") is True:
        raise NotApplicableError("it allows no ingress")
    for path, allowed in firewall.items("allows"):
        if str(allowed.get("protocol")).lower() in ("tcp", "6", "all"):
            for ports in allowed.get("ports") or ["0-65535"]:
                low, _, high = str(ports).partition("-")
                yield OpenPorts(path, tuple(props.get("sourceRanges") or ()), int(low), int(high or low))
