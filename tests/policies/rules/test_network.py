"""Rules NET in the forms that the recorded examples do not have."""

from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from policies.rules.ip_ranges import is_world
from tests.policies.rules.judging import ask, judged, made, results

GROUP, RULE = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
TEMPLATE, POOL = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"
SUBNET, PLACEMENT = "aws:ec2/subnet:Subnet", "aws:ec2/placementGroup:PlacementGroup"
CLUSTER, NODE_POOL = "aws:eks/cluster:Cluster", "gcp:container/nodePool:NodePool"
GKE = "gcp:container/cluster:Cluster"
ALL = {"protocol": "-1", "fromPort": 0, "toPort": 0}
SELF = {**ALL, "self": True}


def template(*groups: object, cards: int = 1, **more: Any) -> Resource:
    devices = [
        {
            "networkCardIndex": card,
            "deviceIndex": min(card, 1),
            "interfaceType": "efa",
            "securityGroups": [*groups],
        }
        for card in range(cards)
    ]
    return made(TEMPLATE, "lt", networkInterfaces=devices, **more)


def pool(**more: Any) -> Resource:
    return made(POOL, "pool", launchTemplate={"id": "lt"}, scalingConfig={"minSize": 0, "maxSize": 4}, **more)


def test_a_group_may_say_itself_that_it_is_open_to_itself() -> None:
    assert results("MLS-NET-01", template("sg"), made(GROUP, "sg", ingress=[SELF], egress=[SELF])) == ["pass"]


def test_a_range_of_everything_does_not_admit_efa() -> None:
    world = {**ALL, "cidrBlocks": ["0.0.0.0/0"]}
    group = made(GROUP, "sg", ingress=[SELF], egress=[world])
    (found,) = ask("MLS-NET-01", template("sg", cards=4), group)
    assert "egress" in found.message


def test_one_device_without_a_group_is_cut_off_from_the_others() -> None:
    devices = template("sg", cards=2).props["networkInterfaces"]
    del devices[1]["securityGroups"]
    group = made(GROUP, "sg", ingress=[SELF], egress=[SELF])
    (found,) = ask("MLS-NET-01", made(TEMPLATE, "lt", networkInterfaces=devices), group)
    assert (found.result, found.path) == ("fail", "networkInterfaces[1].securityGroups")


def test_rules_of_the_older_kind_count() -> None:
    inwards = made(RULE, "in", type="ingress", securityGroupId="sg", self=True, **ALL)
    outwards = made(RULE, "out", type="egress", securityGroupId="sg", sourceSecurityGroupId="sg", **ALL)
    other = made(
        RULE, "tcp", type="egress", securityGroupId="sg", self=True, protocol="tcp", fromPort=0, toPort=9
    )
    assert results("MLS-NET-01", template("sg"), made(GROUP, "sg"), inwards, outwards) == ["pass"]
    assert results("MLS-NET-01", template("sg"), made(GROUP, "sg"), inwards, other) == ["fail"]


def test_the_group_of_a_cluster_is_open_to_itself() -> None:
    cluster = made(CLUSTER, "c", vpcConfig={"clusterSecurityGroupId": "sg-eks"})
    assert results("MLS-NET-01", template("sg-eks"), cluster) == ["pass"]


def test_a_group_of_another_stack_cannot_be_judged() -> None:
    (found,) = ask("MLS-NET-01", template("sg-elsewhere"))
    assert found.result == "undetermined" and "sg-elsewhere" in found.message


def test_the_layout_of_an_unknown_machine_cannot_be_judged() -> None:
    (found,) = ask("MLS-NET-02", template("sg", instanceType="hpc7g.16xlarge"))
    assert found.result == "undetermined" and "hpc7g.16xlarge" in found.message


def test_a_wrong_layout_is_described() -> None:
    (found,) = ask("MLS-NET-02", template("sg", cards=4, instanceType="p4d.24xlarge"))
    wanted, given = found.message.split(" but ")
    assert "efa-only at cards" in wanted and "efa-only" not in given


def test_the_machine_may_be_named_by_the_pool() -> None:
    named = pool(instanceTypes=["p4d.24xlarge"])
    assert results("MLS-NET-02", template("sg"), named) == ["fail"]
    assert results("MLS-NET-02", template("sg")) == ["not-applicable"]


def zones(*names: str) -> list[Resource]:
    return [made(SUBNET, f"subnet-{name}", availabilityZone=name) for name in names]


def test_a_pool_over_efa_in_two_zones() -> None:
    near = (
        template("sg", placement={"groupName": "near"}),
        made(PLACEMENT, "near", name="near", strategy="cluster"),
    )
    both = pool(subnetIds=["subnet-a", "subnet-b"])
    (found,) = ask("MLS-NET-03", both, *near, *zones("a", "b"))
    assert found.result == "fail" and found.message.endswith("a, b")
    assert results("MLS-NET-03", pool(subnetIds=["subnet-a"]), *near, *zones("a", "b")) == ["pass"]


def test_placement_of_another_strategy_and_blocks_that_ec2_places() -> None:
    spread = made(PLACEMENT, "far", name="far", strategy="spread")
    one = pool(subnetIds=["subnet-a"]), *zones("a")
    assert results("MLS-NET-03", template("sg", placement={"groupName": "far"}), spread, *one) == ["fail"]
    block = template("sg", instanceMarketOptions={"marketType": "capacity-block"})
    assert results("MLS-NET-03", block, *one) == ["pass"]


def test_efa_on_a_machine_without_it() -> None:
    (found,) = ask("MLS-NET-04", template("sg", instanceType="g6.2xlarge"), pool())
    assert found.result == "fail" and "g6.2xlarge" in found.message


def test_a_foreign_subnet_cannot_be_judged() -> None:
    assert results("MLS-NET-06", made(POOL, "p", subnetIds=["subnet-elsewhere"])) == ["undetermined"]


def in_subnet(public: bool, **auto_mode: Any) -> list[Resource]:
    """A cluster of EKS whose subnet may give public addresses."""
    compute = {"computeConfig": {"enabled": True, **auto_mode}} if auto_mode else {}
    return [
        made(CLUSTER, vpcConfig={"subnetIds": ["subnet"]}, **compute),
        made(SUBNET, "subnet", mapPublicIpOnLaunch=public),
    ]


PRIVATE = {"privateClusterConfig": {"enablePrivateNodes": True}}
ON_ITS_OWN = {"networkConfig": {"enablePrivateNodes": True}}
DEFAULT_PATH = "privateClusterConfig.enablePrivateNodes"


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([made(GKE, initialNodeCount=1)], f"fail {DEFAULT_PATH}"),
        ([made(GKE, initialNodeCount=1, **PRIVATE)], "pass"),
        ([made(GKE, initialNodeCount=1, removeDefaultNodePool=True)], "not-applicable"),
        ([made(GKE, nodePools=[ON_ITS_OWN])], "pass"),
        ([made(GKE, nodePools=[ON_ITS_OWN, {}])], "fail nodePools[1].networkConfig.enablePrivateNodes"),
        (
            [made(GKE, nodePools=[{"networkConfig": {"enablePrivateNodes": False}}], **PRIVATE)],
            "fail nodePools[0].networkConfig.enablePrivateNodes",
        ),
        (
            [
                made(GKE, nodePools=[{"name": "p"}]),
                made(NODE_POOL, "other", name="p", cluster="it", **ON_ITS_OWN),
            ],
            "not-applicable",
        ),
        ([made(GKE, enableAutopilot=True)], f"fail {DEFAULT_PATH}"),
        ([made(GKE, enableAutopilot=True, **PRIVATE)], "pass"),
        (
            [made(GKE, removeDefaultNodePool=True, clusterAutoscaling={"enabled": True})],
            f"fail {DEFAULT_PATH}",
        ),
        (in_subnet(True, nodePools=["general-purpose"]), "fail vpcConfig.subnetIds"),
        (in_subnet(False, nodePools=["general-purpose"]), "pass"),
        (in_subnet(True, nodePools=[]), "not-applicable"),
        (in_subnet(True), "not-applicable"),
    ],
)
def test_nodes_that_a_cluster_starts_itself(resources: list[Resource], said: str) -> None:
    assert judged("MLS-NET-06", *resources)["it"] == said


def test_a_template_that_asks_for_a_public_address() -> None:
    asking = made(TEMPLATE, "lt", networkInterfaces=[{"associatePublicIpAddress": "true"}])
    (found,) = ask("MLS-NET-06", asking)
    assert (found.result, found.path) == ("fail", "networkInterfaces[0].associatePublicIpAddress")


@pytest.mark.parametrize(
    ("props", "result"),
    [
        ({"ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": 0, "toPort": 65535, "cidrIpv6": "::/0"}, "fail"),
        ({"ipProtocol": "6", "fromPort": 22, "toPort": 22, "cidrIpv4": "128.0.0.0/1"}, "fail"),
        ({"ipProtocol": "udp", "fromPort": 22, "toPort": 22, "cidrIpv4": "0.0.0.0/0"}, "pass"),
        ({"ipProtocol": "TCP", "fromPort": 22, "toPort": 22, "cidrIpv4": "0.0.0.0/0"}, "fail"),
        ({"ipProtocol": "All", "cidrIpv6": "::/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": 3389, "toPort": 3389, "cidrIpv4": "0.0.0.0/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": 3000, "toPort": 4000, "cidrIpv6": "::/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": 5986, "toPort": 5986, "cidrIpv4": "0.0.0.0/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": -1, "toPort": -1, "cidrIpv4": "0.0.0.0/0"}, "fail"),
        ({"ipProtocol": "tcp", "fromPort": 24, "toPort": 1024, "cidrIpv4": "0.0.0.0/0"}, "pass"),
        ({"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "prefixListId": "pl-1"}, "undetermined"),
        ({"ipProtocol": "-1", "prefixListId": UnknownValue("prefixListId", "later")}, "undetermined"),
        ({"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "prefixListId": "pl-1"}, "pass"),
        ({"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "0.0.0.0/0"}, "pass"),
        ({"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "10.0.0.0/8"}, "pass"),
        ({"ipProtocol": "-1", "referencedSecurityGroupId": "sg"}, "pass"),
        (
            {
                "ipProtocol": "tcp",
                "fromPort": 22,
                "toPort": 22,
                "cidrIpv4": UnknownValue("cidrIpv4", "is a secret"),
            },
            "undetermined",
        ),
    ],
)
def test_openings_of_a_security_group(props: dict[str, Any], result: str) -> None:
    found = {one.result for one in ask("MLS-NET-07", made(INGRESS, "rule", **props))}
    assert found == {result}


RDP = {"fromPort": 3389, "toPort": 3389}
WORLD = {"cidrBlocks": ["10.0.0.0/8", "0.0.0.0/0"]}
FIREWALL, KEY = "gcp:compute/firewall:Firewall", {"ec2SshKey": "admin"}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (made(GROUP, ingress=[{"protocol": "Tcp", **RDP, **WORLD}]), "fail ingress[0]"),
        (made(GROUP, egress=[{"protocol": "Tcp", **RDP, **WORLD}]), "pass"),
        (made(GROUP, ingress=[{"protocol": "tcp", **RDP, "prefixListIds": ["pl-1"]}]), "undetermined"),
        (made(GROUP, ingress=[{"protocol": "tcp", **RDP, "prefixListIds": []}]), "pass"),
        (made(RULE, type="ingress", protocol="ALL", fromPort=0, toPort=0, **WORLD), "fail"),
        (made(RULE, type="ingress", protocol=6, fromPort=0, toPort=0, **WORLD), "pass"),
        (made(FIREWALL, allows=[{"protocol": "TCP", "ports": ["3000-4000"]}], sourceRanges=["::/0"]),
         "fail allows[0]"),
        (made(FIREWALL, allows=[{"protocol": "all"}], sourceRanges=["0.0.0.0/0"]), "fail allows[0]"),
        (made(FIREWALL, allows=[{"protocol": "tcp", "ports": ["22"]}]), "fail allows[0]"),
        (made(FIREWALL, allows=[{"protocol": "tcp", "ports": ["22"]}], sourceTags=["bastion"]), "pass"),
        (made(FIREWALL, denies=[{"protocol": "all"}], sourceRanges=["0.0.0.0/0"]), "pass"),
        (made(POOL, remoteAccess=KEY), "fail remoteAccess.sourceSecurityGroupIds"),
        (made(POOL, remoteAccess={**KEY, "sourceSecurityGroupIds": []}),
         "fail remoteAccess.sourceSecurityGroupIds"),
        (made(POOL, remoteAccess={**KEY, "sourceSecurityGroupIds": ["sg-1"]}), "pass"),
        (made(POOL, remoteAccess={**KEY, "sourceSecurityGroupIds": [UnknownValue("id", "later")]}), "pass"),
        (made(POOL, remoteAccess={"sourceSecurityGroupIds": ["sg-1"]}), "not-applicable"),
        (made(POOL, remoteAccess={}), "not-applicable"),
        (made(POOL), "not-applicable"),
    ],
)  # fmt: skip
def test_ports_of_administration(resource: Resource, said: str) -> None:
    assert judged("MLS-NET-07", resource) == {"it": said}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (None, "fail masterAuthorizedNetworksConfig"),
        ({}, "pass"),
        ({"cidrBlocks": []}, "pass"),
        (
            {"cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]},
            "fail masterAuthorizedNetworksConfig.cidrBlocks[0].cidrBlock",
        ),
        (
            {"cidrBlocks": [], "gcpPublicCidrsAccessEnabled": True},
            "fail masterAuthorizedNetworksConfig.gcpPublicCidrsAccessEnabled",
        ),
        ({"cidrBlocks": [], "gcpPublicCidrsAccessEnabled": False}, "pass"),
    ],
)
def test_an_empty_block_of_authorized_networks_admits_none(named: Any, said: str) -> None:
    assert judged("MLS-NET-05", made(GKE, masterAuthorizedNetworksConfig=named)) == {"it": said}


def test_a_dns_endpoint_is_guarded_by_iam() -> None:
    ends = {"dnsEndpointConfig": {"allowExternalTraffic": True}, "ipEndpointsConfig": {"enabled": False}}
    assert judged("MLS-NET-05", made(GKE, controlPlaneEndpointsConfig=ends)) == {"it": "pass"}


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "0.0.0.0/1", "::/0", "2000::/3", "0::0/0"])
def test_what_is_the_world(cidr: str) -> None:
    assert is_world(cidr)


@pytest.mark.parametrize("cidr", ["10.0.0.0/8", "203.0.113.0/24", "fd00::/16", "no range", ""])
def test_what_is_not_the_world(cidr: str) -> None:
    assert not is_world(cidr)


def test_one_gpu_a_node_needs_no_placement() -> None:
    small = made(NODE_POOL, "p", nodeConfig={"machineType": "g2-standard-12"}, nodeCount=8)
    (found,) = ask("MLS-NET-10", small)
    assert found.result == "not-applicable" and "GPUs" in found.message


def test_which_endpoints_a_private_cluster_needs_can_be_chosen() -> None:
    within = [made("aws:ec2/vpc:Vpc", "vpc"), made(SUBNET, "subnet", vpcId="vpc")]
    private = {"subnetIds": ["subnet"], "endpointPrivateAccess": True}
    storage = made(
        "aws:ec2/vpcEndpoint:VpcEndpoint", "s3", vpcId="vpc", serviceName="com.amazonaws.eu-west-1.s3"
    )
    stack = (*within, made(CLUSTER, "cluster", vpcConfig=private), storage)
    assert judged("MLS-NET-09", *stack) == {"cluster": "fail"}
    assert judged("MLS-NET-09", *stack, needed_endpoints=("s3",)) == {"cluster": "pass"}
    assert judged("MLS-NET-09", *stack, needed_endpoints=("s3", "sts")) == {"cluster": "fail"}
