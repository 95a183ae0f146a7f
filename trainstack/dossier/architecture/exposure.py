"""Ways between a stack and the internet, and kinds of resources that hold data (pure)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainstack.dossier.architecture.parts import Row, is_counted, of_type

_ANYWHERE = ("0.0.0.0/0", "::/0")
_EVERYONE = ("allUsers", "allAuthenticatedUsers")

STORES: Mapping[str, str] = {
    "aws:efs/fileSystem:FileSystem": "file system",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "Lustre",
    "aws:rds/cluster:Cluster": "database",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:sagemaker/domain:Domain": "disks of notebooks",
    "aws:sagemaker/mlflowApp:MlflowApp": "MLflow",
    "aws:secretsmanager/secret:Secret": "secret",
    "gcp:filestore/instance:Instance": "file system",
    "gcp:lustre/instance:Instance": "Lustre",
    "gcp:secretmanager/secret:Secret": "secret",
    "gcp:sql/databaseInstance:DatabaseInstance": "database",
    "gcp:storage/bucket:Bucket": "bucket",
    "gcp:workbench/instance:Instance": "disk of a notebook",
}
"""What holds data, by type."""


@dataclass(frozen=True)
class InternetWay:
    """A way between the stack and the internet."""

    urn: str
    direction: str
    """`in` or `out`."""
    what: str
    peers: Sequence[str]
    """The addresses or members at the other end."""
    open: bool
    """Whether everybody is among them."""


def merged(row: Row) -> Mapping[str, Any]:
    """Outputs over inputs of a row."""
    return {**(row.get("inputs") or {}), **(row.get("outputs") or {})}


def at(value: Any, path: str) -> Any:
    """The value at a path such as `vpcConfig.subnetIds`, also below a list of one item; None without one."""
    for part in path.split("."):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        value = value.get(part) if isinstance(value, dict) else None
    return value


def text(row: Row, key: str) -> str:
    """A property that is a text; empty where it is not, as a secret is."""
    found = merged(row).get(key)
    return found if isinstance(found, str) else ""


def texts(value: Any) -> list[str]:
    """The texts of a list, or of one text."""
    given = value if isinstance(value, list) else [value]
    return [one for one in given if isinstance(one, str) and one]


def openings(resources: Sequence[Row]) -> list[InternetWay]:
    """Ways in from the internet, then ways out."""
    found = [
        one
        for row in resources
        if is_counted(row) and (rule := _RULES.get(of_type(row["urn"])))
        for one in rule(row["urn"], merged(row))
    ]
    return sorted(found, key=lambda one: (one.direction, one.what, one.urn))


def _opening(urn: str, what: str, peers: Sequence[str], direction: str = "in") -> InternetWay:
    return InternetWay(
        urn, direction, what, sorted(peers), any(one in (*_ANYWHERE, *_EVERYONE) for one in peers)
    )


def _eks(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if at(props, "vpcConfig.endpointPublicAccess"):
        yield _opening(
            urn, "Kubernetes API", texts(at(props, "vpcConfig.publicAccessCidrs")) or ["0.0.0.0/0"]
        )


def _gke(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    dns = at(props, "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic")
    if dns:
        yield _opening(urn, "Kubernetes API by its DNS name", ["members with a right of IAM"])
    off = at(props, "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled") is False
    if not off and not at(props, "privateClusterConfig.enablePrivateEndpoint"):
        blocks = at(props, "masterAuthorizedNetworksConfig.cidrBlocks")
        given = blocks if isinstance(blocks, list) else []
        cidrs = [str(one.get("cidrBlock")) for one in given if isinstance(one, dict)]
        limited = at(props, "masterAuthorizedNetworksConfig") is not None
        if cidrs or not limited:
            yield _opening(urn, "Kubernetes API", cidrs or ["0.0.0.0/0"])


def _ingress(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    wide = [one for one in texts([props.get("cidrIpv4"), props.get("cidrIpv6")]) if one in _ANYWHERE]
    if wide:
        yield _opening(urn, f"port {props.get('fromPort', 'any')}", wide)


def _firewall(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    wide = [one for one in texts(props.get("sourceRanges")) if one in _ANYWHERE]
    if wide and props.get("direction", "INGRESS") == "INGRESS" and props.get("allows"):
        yield _opening(urn, "firewall rule", wide)


def _load_balancer(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if props.get("internal") is not True:
        yield _opening(urn, "load balancer", ["0.0.0.0/0"])


def _service(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if at(props, "spec.type") != "LoadBalancer":
        return
    marks = at(props, "metadata.annotations") or {}
    internal = ("internal" in str(marks.get("networking.gke.io/load-balancer-type", "")).lower()) or (
        marks.get("service.beta.kubernetes.io/aws-load-balancer-scheme") == "internal"
    )
    if not internal:
        yield _opening(urn, "load balancer of a service", ["0.0.0.0/0"])


def _run(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if props.get("ingress") in (None, "INGRESS_TRAFFIC_ALL"):
        by = "members, by Identity-Aware Proxy" if props.get("iapEnabled") else "members with a right of IAM"
        yield _opening(urn, "web service", [by])


def _sql(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if at(props, "settings.ipConfiguration.ipv4Enabled"):
        networks = at(props, "settings.ipConfiguration.authorizedNetworks")
        given = networks if isinstance(networks, list) else []
        yield _opening(urn, "public address of a database", [str(at(one, "value")) for one in given])


def _granted(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    who = [one for one in texts([props.get("member"), *texts(props.get("members"))]) if one in _EVERYONE]
    if who:
        yield _opening(urn, f"role {props.get('role')}", who)


def _nat(urn: str, props: Mapping[str, Any]) -> Iterator[InternetWay]:
    if props.get("connectivityType", "public") == "public":
        yield _opening(urn, "NAT for nodes without a public address", ["0.0.0.0/0"], "out")


_RULES: Mapping[str, Callable[[str, Mapping[str, Any]], Iterator[InternetWay]]] = {
    "aws:ec2/natGateway:NatGateway": _nat,
    "aws:eks/cluster:Cluster": _eks,
    "aws:lb/loadBalancer:LoadBalancer": _load_balancer,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _ingress,
    "gcp:cloudrunv2/service:Service": _run,
    "gcp:compute/firewall:Firewall": _firewall,
    "gcp:compute/routerNat:RouterNat": _nat,
    "gcp:container/cluster:Cluster": _gke,
    "gcp:sql/databaseInstance:DatabaseInstance": _sql,
    "gcp:storage/bucketIAMMember:BucketIAMMember": _granted,
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember": _granted,
    "kubernetes:core/v1:Service": _service,
}
