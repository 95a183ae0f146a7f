"""Examples of the rules NET."""

from collections.abc import Mapping
from typing import Any

from tests.policies.recording.bases import (
    AWS_NETWORK,
    EFA_POOL,
    GKE,
    cluster,
    gke_pool,
    google_network,
    ingress,
    with_changes,
)
from tests.policies.recording.example import DROP, Example, Made, Resources

_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_SERVICES = ("s3", "ecr.api", "ecr.dkr", "sts", "logs")


def _without(resources: Resources, name: str) -> dict[str, Made]:
    return {other: made for other, made in resources.items() if other != name}


def _endpoints(*services: str) -> dict[str, Made]:
    made = {
        f"to-{name.replace('.', '-')}": Made(
            _ENDPOINT, {"vpcId": "$vpc", "serviceName": f"com.amazonaws.us-east-1.{name}", **_form(name)}
        )
        for name in services
    }
    return {**cluster(endpointPrivateAccess=True, endpointPublicAccess=False), **made}


def _form(service: str) -> Mapping[str, Any]:
    if service == "s3":
        return {"vpcEndpointType": "Gateway"}
    return {"vpcEndpointType": "Interface", "subnetIds": ["$a", "$b"]}


_BUCKET = Made("aws:s3/bucket:Bucket")
_FLOW_LOG = Made(
    "aws:ec2/flowLog:FlowLog",
    {"vpcId": "$vpc", "trafficType": "ALL", "logDestinationType": "s3", "logDestination": "$logs.arn"},
)
_CARDS = EFA_POOL["template"].props["networkInterfaces"]


def _firewall(source: str) -> dict[str, Made]:
    allowed = [{"protocol": "tcp", "ports": ["8265", "10001"]}]
    props = {"network": "$net.name", "direction": "INGRESS", "sourceRanges": [source], "allows": allowed}
    return {**google_network(), "ray": Made("gcp:compute/firewall:Firewall", props)}


def _gke(**changes: Any) -> dict[str, Made]:
    return with_changes(GKE, "cluster", **changes)


_NAMED = {"cidrBlocks": [{"cidrBlock": "203.0.113.0/24"}]}
_EVERYBODY = {"cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]}

EXAMPLES = {
    "MLS-NET-01": Example(
        EFA_POOL, _without(EFA_POOL, "to-self"), at="template", path="networkInterfaces[0].securityGroups"
    ),
    "MLS-NET-02": Example(
        EFA_POOL,
        with_changes(EFA_POOL, "template", networkInterfaces=_CARDS[:1]),
        at="template",
        path="networkInterfaces",
    ),
    "MLS-NET-03": Example(
        EFA_POOL, with_changes(EFA_POOL, "template", placement=DROP), at="pool", path="launchTemplate"
    ),
    "MLS-NET-04": Example(
        EFA_POOL,
        with_changes(EFA_POOL, "pool", scalingConfig={"minSize": 0, "desiredSize": 1, "maxSize": 1}),
        at="pool",
        path="scalingConfig.maxSize",
    ),
    "MLS-NET-05": Example(
        cluster(endpointPublicAccess=True, publicAccessCidrs=["203.0.113.0/24"]),
        cluster(endpointPublicAccess=True),
        at="cluster",
        path="vpcConfig.publicAccessCidrs",
    ),
    "MLS-NET-05.gke": Example(
        _gke(masterAuthorizedNetworksConfig=_NAMED),
        _gke(masterAuthorizedNetworksConfig=_EVERYBODY),
        at="cluster",
        path="masterAuthorizedNetworksConfig.cidrBlocks[0].cidrBlock",
    ),
    "MLS-NET-06": Example(
        EFA_POOL, with_changes(EFA_POOL, "a", mapPublicIpOnLaunch=True), at="pool", path="subnetIds"
    ),
    "MLS-NET-06.gke": Example(
        gke_pool(networkConfig={"enablePrivateNodes": True}),
        gke_pool(),
        at="pool",
        path="networkConfig.enablePrivateNodes",
    ),
    "MLS-NET-07": Example(ingress("203.0.113.0/24"), ingress("0.0.0.0/0"), at="open"),
    "MLS-NET-07.gcp": Example(
        _firewall("203.0.113.0/24"), _firewall("0.0.0.0/0"), at="ray", path="allows[0]"
    ),
    "MLS-NET-08": Example({**AWS_NETWORK, "logs": _BUCKET, "flows": _FLOW_LOG}, AWS_NETWORK, at="vpc"),
    "MLS-NET-08.gcp": Example(
        google_network(logConfig={"aggregationInterval": "INTERVAL_10_MIN"}),
        google_network(),
        at="sub",
        path="logConfig",
    ),
    "MLS-NET-09": Example(_endpoints(*_SERVICES), _endpoints(*_SERVICES[1:]), at="cluster"),
    "MLS-NET-10": Example(
        gke_pool(placementPolicy={"type": "COMPACT"}), gke_pool(), at="pool", path="placementPolicy.type"
    ),
}
