"""Access from the internet: the API of a cluster, and open ports."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.ip_ranges import is_world
from policies.rules.network.firewalls import FIREWALL, POLICY_RULES, open_ports_of_firewall
from policies.rules.network.security_groups import (
    DEFAULT,
    GROUP,
    INGRESS,
    LISTS,
    PREFIX_LIST,
    RULE,
    OpenPorts,
    open_ports,
    ranges_of_list,
)
from policies.rules.pools import NODE_GROUP
from policies.rules.properties import raw
from policies.stack import Stack

_EKS, _GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"
_ADMINISTRATION = {
    22: "SSH",
    23: "Telnet",
    2375: "Docker",
    2376: "Docker",
    2379: "etcd",
    3389: "RDP",
    5900: "VNC",
    5985: "WinRM",
    5986: "WinRM",
    6443: "the Kubernetes API",
    10250: "the kubelet",
}
_PORTS = {**_ADMINISTRATION, 5000: "MLflow", 8265: "Ray", 10001: "Ray"}


@CATALOG.rule(
    "MLS-NET-05",
    "high",
    (_EKS, _GKE),
    "An attacker who reaches the API of a cluster can use stolen credentials and unpatched flaws.",
    "Make the endpoint private, or name the ranges of your offices and VPN.",
    ("FSBP EKS.1", "CKV_AWS_38", "CKV_AWS_39", "CIS EKS 5.4.1", "CIS EKS 5.4.2"),
)
def the_api_is_restricted(cluster: Resource) -> Iterator[Violation]:
    """The API of a cluster is private, open to named ranges only, or at a DNS name guarded by IAM."""
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
    # The DNS endpoint admits by IAM, from every network (GKE, "About control plane access").
    ends = (props.get("controlPlaneEndpointsConfig") or {}).get("ipEndpointsConfig") or {}
    private = props.get("privateClusterConfig") or {}
    if ends.get("enabled") is False or ends.get("enablePublicEndpoint") is False:
        return
    if private.get("enablePrivateEndpoint") is True:
        return
    named = props.get("masterAuthorizedNetworksConfig")
    # An empty block admits no address from outside (google_container_cluster,
    # master_authorized_networks_config).
    if named is None:
        yield Violation("every address reaches the endpoint", "masterAuthorizedNetworksConfig")
        return
    if named.get("gcpPublicCidrsAccessEnabled") is True:
        path = "masterAuthorizedNetworksConfig.gcpPublicCidrsAccessEnabled"
        yield Violation("every public address of Google Cloud, of any customer, reaches the endpoint", path)
    for index, block in enumerate(named.get("cidrBlocks") or ()):
        if is_world(block.get("cidrBlock")):
            path = f"masterAuthorizedNetworksConfig.cidrBlocks[{index}].cidrBlock"
            yield Violation(f"the endpoint is open to {block['cidrBlock']}", path)


@CATALOG.rule_around(
    "MLS-NET-07",
    "critical",
    (INGRESS, RULE, GROUP, DEFAULT, FIREWALL, *POLICY_RULES, NODE_GROUP),
    "Scanners find open ports within minutes; MLflow and Ray execute code from any client.",
    "Name the ranges that need the port, or use a port-forward.",
    ("CKV_AWS_24", "CKV_AWS_25", "CKV_AWS_100", "CKV_GCP_2", "CKV_GCP_3"),
)
def no_administration_ports_are_public(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """No port for administration, MLflow or Ray is open to the world."""
    if resource.kind == NODE_GROUP:
        yield from _remote_access(resource.props)
        return
    unresolved = ""
    for opening in _ports_of(resource):
        ports = [f"{port} ({_PORTS[port]})" for port in filter(opening.admits, _PORTS)]
        if not ports:
            continue
        listed, unknown = _listed(resource, opening, stack)
        for cidr in filter(is_world, (*opening.ranges, *listed)):
            yield Violation(f"port {', '.join(ports)} is open to {cidr}", opening.path)
        if unknown and not unresolved:
            unresolved = f"port {', '.join(ports)} is open to {unknown[0]!r}, whose ranges are not known"
    if unresolved:
        raise UndeterminedError(unresolved)


def _listed(resource: Resource, opening: OpenPorts, stack: Stack) -> tuple[list[Any], list[Any]]:
    """The ranges of its prefix lists in the stack, and the lists whose ranges are not known."""
    listed: list[Any] = []
    unknown: list[Any] = []
    for value in opening.unresolved:
        at = opening.path.partition("[")[0] or next(key for key in LISTS if resource.raw(key) is not None)
        try:
            found = stack.referred(resource, value, at, PREFIX_LIST)
            if found is None:
                unknown.append(value)
            else:
                for cidr in ranges_of_list(found, stack):
                    listed.append(cidr)  # noqa: PERF402 - those before an error count
        except UndeterminedError:
            unknown.append(value)
    return listed, unknown


def _remote_access(group: Any) -> Iterator[Violation]:
    """A key without source groups opens SSH, or RDP, to the internet (EKS API, RemoteAccessConfig)."""
    access = group.get("remoteAccess") or {}
    key = raw(access, "ec2SshKey")
    if not (is_unknown(key) or key):
        raise NotApplicableError("it has no remote access")
    if not access.get("sourceSecurityGroupIds"):
        port = 3389 if "WINDOWS" in str(group.get("amiType")) else 22
        message = f"port {port} ({_PORTS[port]}) is open to 0.0.0.0/0"
        yield Violation(message, "remoteAccess.sourceSecurityGroupIds")


def _ports_of(resource: Resource) -> Iterator[OpenPorts]:
    if resource.kind in (FIREWALL, *POLICY_RULES):
        yield from open_ports_of_firewall(resource)
    else:
        yield from open_ports(resource, "ingress")
