"""Flow logs and endpoints of VPCs."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.stack import Stack

_VPC, _LOG = "aws:ec2/vpc:Vpc", "aws:ec2/flowLog:FlowLog"
_GCP_NETWORK = "gcp:compute/network:Network"
_SUBNET, _GCP_SUBNET = "aws:ec2/subnet:Subnet", "gcp:compute/subnetwork:Subnetwork"


@CATALOG.rule_around(
    "MLS-NET-08",
    "medium",
    (_VPC, _GCP_SUBNET),
    "Only flow logs show afterwards where data was sent, or which job fills the NAT gateway.",
    "Add a flow log to the VPC, or logConfig to the subnetwork.",
    ("CKV2_AWS_11", "CKV_GCP_61", "CIS GKE 5.6.1"),
)
def flows_are_logged(network: Resource, stack: Stack) -> Iterator[Violation]:
    """A VPC, or each of its subnets, has a flow log."""
    if network.kind == _GCP_SUBNET:
        if "PROXY" in str(network.props.get("purpose")):
            raise NotApplicableError("it is for load balancers, and has no flow logs")
        if not network.props.get("logConfig"):
            if _is_of_rdma(network, stack):
                raise NotApplicableError("its network carries RDMA alone, and has no flow logs")
            yield Violation("has no flow logs", "logConfig")
        return
    if any(stack.users(network, _LOG, "vpcId")):
        return
    subnets = list(stack.users(network, _SUBNET, "vpcId"))
    if not subnets or not all(any(stack.users(subnet, _LOG, "subnetId")) for subnet in subnets):
        yield Violation("has no flow log")


def _is_of_rdma(subnetwork: Resource, stack: Stack) -> bool:
    """Return whether its network has a profile, so that it has only network cards for RDMA.

    VPC documentation, "Create a VPC network with the RDMA network profile": other features are
    rejected. That flow logs are among this is to be confirmed: no source shows a network that has both
    (GoogleCloudPlatform/cluster-toolkit modules/network/gpu-rdma-vpc sets none).
    """
    network = stack.target(subnetwork, "network", _GCP_NETWORK)
    return bool(network and network.props.get("networkProfile"))


_CLUSTER, _ENDPOINT = "aws:eks/cluster:Cluster", "aws:ec2/vpcEndpoint:VpcEndpoint"


@CATALOG.rule_around(
    "MLS-NET-09",
    "medium",
    (_CLUSTER,),
    "Images, checkpoints, logs and credentials then pass the NAT gateway at its price, or do not arrive.",
    "Add the missing endpoints to the VPC: a gateway for S3, interfaces for the others, "
    "or list the required ones in needed_endpoints of the settings.",
)
def private_clusters_reach_their_services(cluster: Resource, stack: Stack) -> Iterator[Violation]:
    """The VPC of a cluster with a private endpoint has endpoints for S3, ECR, STS and CloudWatch Logs."""
    if (cluster.props.get("vpcConfig") or {}).get("endpointPrivateAccess") is not True:
        raise NotApplicableError("its endpoint is not private")
    vpc = _vpc_of(cluster, stack)
    services = [str(one.props.get("serviceName")) for one in stack.users(vpc, _ENDPOINT, "vpcId")]
    missing = [
        name
        for name in stack.settings.needed_endpoints
        if not any(one.endswith(f".{name}") for one in services)
    ]
    if missing:
        yield Violation(f"{vpc.name} has no endpoint for {', '.join(missing)}")


def _vpc_of(cluster: Resource, stack: Stack) -> Resource:
    subnets = stack.sources(cluster, cluster.raw("vpcConfig.subnetIds"), "vpcConfig", _SUBNET)
    found = {vpc.urn: vpc for one in subnets.resources if (vpc := stack.target(one, "vpcId", _VPC))}
    if len(found) != 1:
        raise UndeterminedError("its VPC is not in this stack")
    return next(iter(found.values()))
