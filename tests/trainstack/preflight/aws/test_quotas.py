"""Quotas hold what others use and the stack at its largest; a shortfall comes with the request to make."""

from dataclasses import replace
from typing import Any

from infra.catalog.aws import facts
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from tests.trainstack.preflight.aws.asking import STACK, Answering, Cloud, account, asked
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import quotas
from trainstack.preflight.aws.needs import needs

OWN = [{"Key": "trainstack:stack", "Value": STACK}]
# In the order in which the stack takes them, with what an account may have of each.
ALLOWED = {
    "vpcs": 5.0,
    "internet_gateways": 5.0,
    "elastic_ips": 5.0,
    "nat_gateways_per_zone": 5.0,
    "gateway_endpoints": 20.0,
    "eks_clusters": 100.0,
    "eks_node_groups": 30.0,
    "db_clusters": 40.0,
    "db_instances": 40.0,
    "efs_file_systems": 1000.0,
    "lustre_persistent_2_gib": 100800.0,
    "ec2_on_demand_standard": 128.0,
    "network_interfaces": 5000.0,
    "ec2_on_demand_p": 0.0,
    "ebs_gp3_tib": 50.0,
    "ec2_spot_g": 64.0,
}


def values(cloud: Cloud, short: tuple[str, ...] = (), **allowed: float) -> Cloud:
    """What Service Quotas says of each quota, and that none of those that are short was asked for."""
    for key, value in {**ALLOWED, **allowed}.items():
        row = facts.quotas[key]
        code = {"ServiceCode": row.service, "QuotaCode": row.quota_code}
        cloud.answers("service-quotas", "get_service_quota", {"Quota": {"Value": value}}, **code)
        if key in short:
            operation = "list_requested_service_quota_change_history_by_quota"
            cloud.answers("service-quotas", operation, {"RequestedQuotas": []})
    return cloud


def use(cloud: Cloud, **found: list[Any]) -> Cloud:
    """What exists in the account: of each kind the rows given, else nothing."""

    def rows(kind: str) -> list[Any]:
        return found.get(kind, [])

    cloud.answers("ec2", "describe_vpcs", {"Vpcs": rows("vpcs")})
    cloud.answers("ec2", "describe_internet_gateways", {"InternetGateways": []})
    cloud.answers("ec2", "describe_addresses", {"Addresses": rows("addresses")})
    zone = {"SubnetId": "subnet-a", "AvailabilityZone": "us-east-1a"}
    cloud.answers("ec2", "describe_subnets", {"Subnets": [zone]})
    cloud.answers("ec2", "describe_nat_gateways", {"NatGateways": rows("gateways")})
    cloud.answers("ec2", "describe_vpc_endpoints", {"VpcEndpoints": rows("endpoints")})
    cloud.answers("ec2", "describe_instances", {"Reservations": [{"Instances": rows("machines")}]})
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": rows("reserved")})
    cloud.answers("ec2", "describe_network_interfaces", {"NetworkInterfaces": []})
    cloud.answers("ec2", "describe_volumes", {"Volumes": rows("volumes")})
    cloud.answers("eks", "list_clusters", {"clusters": [STACK, "other"]})
    cloud.answers("fsx", "describe_file_systems", {"FileSystems": rows("lustre")})
    cloud.answers("efs", "describe_file_systems", {"FileSystems": []})
    cloud.answers("rds", "describe_db_clusters", {"DBClusters": rows("databases")})
    cloud.answers("rds", "describe_db_instances", {"DBInstances": []})
    return cloud


def room(cloud: Cloud) -> dict[str, Answer]:
    found = {answer.check.removeprefix("quota "): answer for answer in asked(quotas.room, account(cloud))}
    assert cloud.is_exhausted()
    return found


def test_pools_count_at_their_largest_though_they_start_at_none() -> None:
    most = needs(account(Cloud()).spec).most
    wanted = {demand.key: demand.amount for demand in most}
    assert wanted["ec2_on_demand_p"] == 4 * 96  # p4d.24xlarge
    assert wanted["ec2_spot_g"] == 8 * 8  # g6.2xlarge
    processors = [one.amount for one in most if one.key == "ec2_on_demand_standard"]
    assert processors == [6 * 4, 4 * 16]  # m6i.xlarge of the system, m6i.4xlarge
    assert wanted["lustre_persistent_2_gib"] == 4800
    interfaces = [one.amount for one in most if one.key == "network_interfaces"]
    assert interfaces == [6, 4 * 4, 8, 4]  # four EFA devices per p4d.24xlarge


def test_a_deployment_takes_the_nodes_of_its_validation() -> None:
    now = {demand.key: demand.amount for demand in needs(account(Cloud()).spec).now}
    assert now["ec2_on_demand_p"] == 2 * 96
    assert "ec2_spot_g" not in now


def test_reserved_nodes_were_taken_of_the_quota_when_they_were_reserved() -> None:
    pool = {"kind": "reserved", "id": "cr-0123456789abcdef0"}
    spec = account(Cloud(), layout__pools__0__purchase=pool).spec
    assert "ec2_on_demand_p" not in {demand.key for demand in needs(spec).most}


def test_a_new_account_is_short_of_gpus_with_the_request_to_make() -> None:
    found = room(use(values(Cloud(), short=("ec2_on_demand_p",))))
    short = [key for key, answer in found.items() if answer.state is not State.READY]
    assert short == ["ec2_on_demand_p"]
    assert found["ec2_on_demand_p"].fix == (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        "--quota-code L-417A185B --desired-value 384 --region us-east-1"
    )


def test_stacks_of_one_deployment_share_the_quotas_of_their_region() -> None:
    cloud = use(
        values(
            Cloud(),
            ("elastic_ips", "eks_clusters"),
            elastic_ips=1,
            eks_clusters=2,
            ec2_on_demand_p=768,
            ec2_spot_g=200,
            ec2_on_demand_standard=200,
        ),
        addresses=[{"Tags": OWN}, {"Tags": [{"Key": "trainstack:stack", "Value": "beside"}]}],
    )
    of = account(cloud)
    of = replace(of, beside=(of.spec.model_copy(update={"name": "beside"}),))
    found = {answer.check.removeprefix("quota "): answer for answer in asked(quotas.room, of)}
    short = {key for key, answer in found.items() if answer.state is State.SHORT}
    # Node groups are counted by cluster. Another stack has a cluster.
    assert short == {"elastic_ips", "eks_clusters"}
    assert ", 0 used" in found["elastic_ips"].text


def test_what_others_use_counts_and_what_the_stack_itself_has_does_not() -> None:
    others: dict[str, Any] = {"InstanceType": "g6.2xlarge", "InstanceLifecycle": "spot"}
    idle = {"InstanceType": "p4d.24xlarge", "AvailableInstanceCount": 1, "ReservationType": "default"}
    found = room(
        use(
            values(
                Cloud(), ("ec2_spot_g", "ec2_on_demand_p", "elastic_ips"), ec2_on_demand_p=400, elastic_ips=1
            ),
            machines=[others, {**others, "Tags": OWN}],
            reserved=[idle, {**idle, "ReservationType": "capacity-block"}],
            addresses=[{}, {"Tags": OWN}],
            volumes=[{"Size": 1024}],
            lustre=[{"StorageCapacity": 1200, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}],
        )
    )
    assert ", 8 used" in found["ec2_spot_g"].text
    assert "--desired-value 72" in found["ec2_spot_g"].fix
    assert "96 used" in found["ec2_on_demand_p"].text
    assert found["elastic_ips"].state is State.SHORT
    assert ", 1 used" in found["ebs_gp3_tib"].text
    assert ", 0 used" in found["lustre_persistent_2_gib"].text
    assert ", 1 used" in found["eks_clusters"].text


def test_gateways_endpoints_and_databases_of_others_count() -> None:
    """NAT gateways by zone: only those in a zone of the stack stand in its way."""
    gateways = [{"SubnetId": "subnet-a"}] * 5 + [{"SubnetId": "subnet-elsewhere"}] * 9
    full = ("nat_gateways_per_zone", "gateway_endpoints", "db_clusters")
    cloud = use(
        values(Cloud(), full, ec2_on_demand_p=400),
        gateways=[*gateways, {"SubnetId": "subnet-a", "Tags": OWN}],
        endpoints=[{}] * 20,
        databases=[{}] * 40,
    )
    found = room(cloud)
    short = {key for key, answer in found.items() if answer.state is not State.READY}
    assert short == set(full)
    assert "--quota-code L-FE5A380F --desired-value 6 " in found["nat_gateways_per_zone"].fix


def test_spot_machines_without_a_published_quota_are_unknown_never_ready() -> None:
    """P6 has no quota in public listings: an account that lists none by name is asked for nothing."""
    pool = {"purchase": {"kind": "spot"}, "machine": "p6-b200.48xlarge", "rdma": False}
    shipped = read(CONFIG / f"Pulumi.{STACK}.yaml", "f")["config"]["trainstack:spec"]["layout"]["pools"]
    of = Answering(get_service_quota={"Quota": {"Value": 1e6}})
    changed = account(of, layout__pools=[{**shipped[0], **pool}, *shipped[1:]])
    found = {answer.check: answer for answer in asked(quotas.room, changed)}
    assert found["quota ec2_spot_p6"].state is State.UNKNOWN
    named = {"QuotaName": facts.quotas["ec2_spot_p6"].description, "QuotaCode": "L-1", "Value": 100.0}
    of.answers["list_service_quotas"] = {"Quotas": [named]}
    found = {answer.check: answer for answer in asked(quotas.room, changed)}
    assert found["quota ec2_spot_p6"].state is State.SHORT
    assert "--quota-code L-1 --desired-value 768 " in found["quota ec2_spot_p6"].fix


def test_a_pending_request_is_shown() -> None:
    row = {"DesiredValue": 768.0, "Status": "CASE_OPENED"}
    cloud = Cloud()
    for key, value in ALLOWED.items():
        cloud.answers("service-quotas", "get_service_quota", {"Quota": {"Value": value}})
        if key == "ec2_on_demand_p":
            operation = "list_requested_service_quota_change_history_by_quota"
            cloud.answers("service-quotas", operation, {"RequestedQuotas": [row]})
    assert "request for 768" in room(use(cloud))["ec2_on_demand_p"].text


def test_a_value_that_was_never_changed_is_the_default() -> None:
    cloud = Cloud()
    for key, value in {**ALLOWED, "ec2_on_demand_p": 500.0}.items():
        if key == "ec2_on_demand_p":
            cloud.refuses("service-quotas", "get_service_quota", "NoSuchResourceException")
            cloud.answers("service-quotas", "get_aws_default_service_quota", {"Quota": {"Value": value}})
        else:
            cloud.answers("service-quotas", "get_service_quota", {"Quota": {"Value": value}})
    assert room(use(cloud))["ec2_on_demand_p"].state is State.READY


def test_an_unreadable_quota_is_unknown_and_the_others_are_checked() -> None:
    cloud = Cloud()
    for _ in ALLOWED:
        cloud.refuses("service-quotas", "get_service_quota", "AccessDeniedException", "no")
    answers = asked(quotas.room, account(cloud))
    assert {answer.state for answer in answers} == {State.UNKNOWN}
    assert len(answers) == len(ALLOWED)


def test_what_is_left_is_the_quotas_without_what_others_use() -> None:
    cloud = use(values(Cloud(), ec2_on_demand_p=96), addresses=[{}])
    left = quotas.left(account(cloud))
    assert (left["ec2_on_demand_p"], left["elastic_ips"], left["eks_clusters"]) == (96, 4, 99)


def test_a_pool_without_gpus_takes_processors_too() -> None:
    shipped = read(CONFIG / f"Pulumi.{STACK}.yaml", "f")["config"]["trainstack:spec"]["layout"]["pools"]
    more = {**shipped[1], "name": "spare", "machine": "m7i.4xlarge", "max_nodes": 3}
    spec = account(Cloud(), layout__pools=[*shipped, more]).spec
    wanted = {one.key: one.amount for one in needs(spec).most}
    assert wanted["ec2_spot_standard"] == 3 * 16
