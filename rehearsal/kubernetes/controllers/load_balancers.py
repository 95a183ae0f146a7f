"""Cloud resources of externally reachable Services: deleted with the Service, but not with the cluster.

Source: cloud-provider-aws, docs/service_controller.md (a load balancer in the cluster's subnets and a
security group `k8s-elb-...` in its VPC); kubernetes/cloud-provider-gcp, providers/gce (`MakeFirewallName`: a
firewall rule `k8s-fw-` with the load balancer's name); Google Kubernetes Engine documentation, "Deleting a
cluster" (Services of type LoadBalancer) and "Container-native load balancing through standalone zonal NEGs"
(annotation, "Preventing leaked NEGs"). The groups of a port in several zones are one here.
"""

import json

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER, KubeCluster

_SERVICE = "kubernetes:core/v1:Service"
_ELB, _GROUP = "aws:elb/loadBalancer:LoadBalancer", "aws:ec2/securityGroup:SecurityGroup"
_RULE, _FIREWALL = "gcp:compute/forwardingRule:ForwardingRule", "gcp:compute/firewall:Firewall"
_ENDPOINTS, _NEG = "gcp:compute/networkEndpointGroup:NetworkEndpointGroup", "cloud.google.com/neg"
_MADE = (_ELB, _GROUP, _RULE, _FIREWALL, _ENDPOINTS)
_SUBNET, _VPC, _NETWORK = "aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc", "gcp:compute/network:Network"


def sync(cluster: KubeCluster, service: Record) -> None:
    """Create the resources that a Service needs, and delete those that it no longer needs."""
    if service.type != _SERVICE:
        return
    balanced = (service.outputs.get("spec") or {}).get("type") == "LoadBalancer"
    ports = _exposed(service) if cluster.record.type == GKE_CLUSTER else []
    if (balanced or ports) and not _made(cluster, service):
        if balanced:
            _make(cluster, service)
        for port in ports:
            _insert(cluster, service, _ENDPOINTS, f"k8s1-{port}-", _network(cluster))
    elif not balanced and not ports:
        remove(cluster, service)


def remove(cluster: KubeCluster, service: Record) -> None:
    """Delete the resources of a Service."""
    for record in _made(cluster, service) if service.type == _SERVICE else ():
        cluster.state.remove(record)


def _made(cluster: KubeCluster, service: Record) -> list[Record]:
    name = _name(cluster, service)
    state = cluster.state
    return [one for token in _MADE for one in state.find(type=token, name=name)]


def _make(cluster: KubeCluster, service: Record) -> None:
    if cluster.record.type == EKS_CLUSTER:
        network = cluster.record.outputs.get("vpcConfig") or {}
        vpc = _issued(cluster, network.get("vpcId"), _VPC)
        group = _insert(cluster, service, _GROUP, "k8s-elb-", {"vpcId": vpc} if vpc else {})
        subnets = [_issued(cluster, value, _SUBNET) for value in network.get("subnetIds") or ()]
        uses = {f"subnets[{index}]": one for index, one in enumerate(subnets) if one is not None}
        _insert(cluster, service, _ELB, "", {**uses, "securityGroups[0]": group})
    elif cluster.record.type == GKE_CLUSTER:
        _insert(cluster, service, _RULE, "", _network(cluster))
        _insert(cluster, service, _FIREWALL, "k8s-fw-", _network(cluster))


def _network(cluster: KubeCluster) -> dict[str, Record]:
    network = _issued(cluster, cluster.record.outputs.get("network"), _NETWORK)
    return {"network": network} if network else {}


def _exposed(service: Record) -> list[str]:
    """Ports of a Service with a network endpoint group."""
    try:
        value = json.loads(at(service.outputs, f'metadata.annotations["{_NEG}"]') or "{}")
        return sorted(value.get("exposed_ports") or ())
    except (TypeError, ValueError, AttributeError):
        return []  # the controller reports an event and creates none


def _insert(
    cluster: KubeCluster, service: Record, token: str, prefix: str, uses: dict[str, Record]
) -> Record:
    hostname = str(at(service.outputs, "status.loadBalancer.ingress[0].hostname") or "")
    made = prefix + (hostname.partition(".")[0] or f"a{service.key}")
    record = cluster.state.insert(
        package=token.partition(":")[0],
        type=token,
        scope=cluster.record.scope,
        id=made,
        urn="",
        name=_name(cluster, service),
        inputs={},
        outputs={"id": made},
    )
    cluster.state.issue(record, {made})
    cluster.state.refer(record, uses)
    return record


def _name(cluster: KubeCluster, service: Record) -> str:
    return f"load balancer of Service {service.id} in cluster {cluster.name}"


def _issued(cluster: KubeCluster, value: object, token: str) -> Record | None:
    found = cluster.state.issued(value) if isinstance(value, str) else []
    return next((record for record in found if record.type == token), None)
