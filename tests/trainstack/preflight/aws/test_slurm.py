"""Preflight of a stack with Slurm on AWS PCS: its image, its cluster, its quotas and its services."""

import datetime
from typing import Any

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, Answering, Refusal, account, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.aws import SLURM_CHECKS, disk_key, places, quotas, reservations
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.needs import needs
from trainstack.preflight.aws.slurm import cluster, image

STACK = "large-slurm-aws"
AMI = "ami-0123456789abcdef0"
READY = {
    "ImageId": AMI,
    "State": "available",
    "Architecture": "x86_64",
    "ImageOwnerAlias": "amazon",
    "Name": "aws-pcs-ready-dlami-base-ubuntu2404-x86_64-20260601",
    "Description": "PCS-Ready DLAMI. PCS Agent: 1.4.0-1. Slurm: 25.05.7-1, 25.11.2-1. EFS Utils: 2.4.2",
}
OF_PCS = f"arn:aws:pcs:us-east-1:{ACCOUNT}:cluster/pcs_abc"


def slurm(cloud: Any, **changes: Any) -> Account:
    return account(cloud, None, STACK, **{"on__pcs__image_id": AMI, **changes})


def judged(found: dict[str, Any], **changes: Any) -> tuple[list[State], str]:
    cloud = Answering(describe_images={"Images": [{**READY, **found}]})
    answers = asked(image.usable, slurm(cloud, **changes))
    return states(answers), " ".join(f"{one.text} {one.fix}" for one in answers)


@pytest.mark.parametrize("code", ["InvalidAMIID.NotFound", "InvalidAMIID.Malformed"])
def test_an_image_that_does_not_exist_is_short_and_the_fix_finds_one(code: str) -> None:
    (answer,) = asked(image.usable, slurm(Answering(describe_images=Refusal(code))))
    assert answer.state is State.SHORT
    assert "/aws/service/pcs/ami/" in answer.fix and "on.pcs.image_id" in answer.text


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"State": "failed"}, "failed"),
        ({"Architecture": "arm64"}, "layout.login.machine"),
        ({"Description": "PCS Agent: 1.3.0. Slurm: 24.11.7-1, 25.05.7-1. EFS Utils: 2.4.2"}, "25.11"),
    ],
)
def test_an_image_that_does_not_fit_is_short(found: dict[str, Any], word: str) -> None:
    answers, text = judged(found, on__pcs__container="/fsx/gate.sqsh")
    assert set(answers) == {State.SHORT} and word in text


def test_an_image_of_the_service_needs_a_container_for_the_gate() -> None:
    assert judged({})[0] == [State.SHORT]
    assert judged({}, on__pcs__container="/fsx/gate.sqsh")[0] == [State.READY]
    assert judged({}, smoke__enabled=False)[0] == [State.READY]


def test_the_agent_of_an_image_of_ones_own_is_unknown() -> None:
    own = {"ImageOwnerAlias": "self", "Name": "ours"}
    assert judged(own)[0] == [State.NOTE]
    # A name proves nothing: the owner of a shared image chooses it.
    assert judged({"ImageOwnerAlias": "", "Name": READY["Name"]})[0] == [State.NOTE]


def clusters(**row: Any) -> dict[str, Any]:
    now = datetime.datetime(2026, 11, 30)
    found = {"name": "other", "id": "pcs_abc", "arn": OF_PCS, "status": "ACTIVE"}
    return {"clusters": [{**found, "createdAt": now, "modifiedAt": now, **row}]}


@pytest.mark.parametrize(
    ("row", "tags", "state"),
    [
        ({}, {}, State.READY),
        ({"status": "CREATING"}, {}, State.SHORT),
        ({"name": STACK}, {}, State.SHORT),
        ({"name": STACK}, {"trainstack:stack": "another"}, State.SHORT),
        ({"name": STACK}, {"trainstack:stack": STACK}, State.READY),
    ],
)
def test_a_cluster_of_the_name_must_be_the_stacks(
    row: dict[str, Any], tags: dict[str, str], state: State
) -> None:
    cloud = Answering(list_clusters=clusters(**row), list_tags_for_resource={"tags": tags})
    assert states(asked(cluster.possible, slurm(cloud))) == [state]


def test_a_cluster_has_ten_groups() -> None:
    layout = slurm(Answering()).slurm
    pools = [{**layout.pools[2].model_dump(mode="json"), "name": f"cpu{index}"} for index in range(8)]
    training = layout.pools[0].model_dump(mode="json")
    teams = [{"name": "Research", "gpus": {"p4d": 8}}]

    def state(more: int) -> list[State]:
        rows = [training, *pools[: 8 + more], *([{**pools[0], "name": "more"}] if more else [])]
        return states(asked(cluster.possible, slurm(Answering(), layout__pools=rows, teams=teams)))

    assert state(0) == [State.READY]
    assert state(1) == [State.SHORT]


def test_services_and_machines_of_the_region_are_those_of_slurm() -> None:
    answer = {"InvalidParameters": ["/aws/service/global-infrastructure/regions/us-east-1/services/pcs"]}
    found = asked(places.services, slurm(Answering(get_parameters=answer)))
    assert states(found) == [State.SHORT] and "pcs" in found[0].text
    zones = [
        {"ZoneName": f"us-east-1{one}", "ZoneId": f"use1-az{one}", "State": "available"} for one in "abc"
    ]
    cloud = Answering(describe_availability_zones={"AvailabilityZones": zones})
    wanted = {one.text.partition(":")[0] for one in asked(places.types, slurm(cloud))}
    assert "layout.login" in wanted and "layout.pools[0]" in wanted


def test_the_quotas_are_those_of_nodes_login_node_and_cluster() -> None:
    spec = slurm(Answering()).spec
    now, most = ({one.key: 0.0 for one in rows} for rows in (needs(spec).now, needs(spec).most))
    for total, rows in ((now, needs(spec).now), (most, needs(spec).most)):
        for one in rows:
            total[one.key] += one.amount
    # 16 p4d.24xlarge; 4 m6i.4xlarge and one m6i.xlarge; 8 g6.2xlarge on spot.
    assert (most["ec2_on_demand_p"], most["ec2_on_demand_standard"], most["ec2_spot_g"]) == (1536, 68, 64)
    assert (now["ec2_on_demand_p"], now["ec2_on_demand_standard"]) == (192, 4)
    assert (most["pcs_clusters"], most["efs_file_systems"], most["lustre_persistent_2_gib"]) == (1, 1, 9600)
    assert not {"eks_clusters", "db_clusters", "eks_node_groups"} & {*most}


def test_clusters_of_others_count_against_the_quota_of_the_region() -> None:
    rows = [{"QuotaName": "Clusters", "QuotaCode": "L-0", "Value": 1.0}]
    limits = {"list_aws_default_service_quotas": {"Quotas": rows}}
    cloud = Answering(list_clusters=clusters(), get_service_quota={"Quota": {"Value": 1e6}}, **limits)
    found = {one.check: one for one in asked(quotas.room, slurm(cloud))}
    assert found["quota pcs_clusters"].state is State.SHORT
    cloud.answers["list_clusters"] = clusters(name=STACK)
    found = {one.check: one for one in asked(quotas.room, slurm(cloud))}
    assert found["quota pcs_clusters"].state is State.READY


def test_a_capacity_block_of_a_partition_is_checked() -> None:
    bought = {"kind": "block", "id": "cr-0a1b2c3d4e5f67890"}
    cloud = Answering(describe_capacity_reservations=Refusal("InvalidCapacityReservationId.NotFound"))
    found = asked(reservations.capacity, slurm(cloud, layout__pools__0__purchase=bought))
    assert states(found) == [State.SHORT]


def test_the_key_of_disks_is_used_by_pcs() -> None:
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/22222222-3333-4444-5555-666666666666"
    meta = {"KeyId": key, "KeyState": "Enabled", "KeySpec": "SYMMETRIC_DEFAULT"}
    cloud = Answering(describe_key={"KeyMetadata": meta}, get_role=Refusal("NoSuchEntity"))
    (answer,) = asked(disk_key.usable, slurm(cloud, on__disk_key_arn=key))
    assert answer.state is State.SHORT
    assert "AWSServiceRoleForPCS" in answer.text and "pcs.amazonaws.com" in answer.fix


def test_a_log_group_of_an_earlier_cluster_is_short() -> None:
    name = f"/aws/vendedlogs/pcs/{STACK}"
    group = {"logGroupName": name, "arn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{name}:*"}
    cloud = Answering(describe_log_groups={"logGroups": [group]}, list_tags_for_resource={"tags": {}})
    assert states(asked(cluster.leftovers, slurm(cloud))) == [State.SHORT]


def test_nothing_of_kubernetes_is_checked() -> None:
    assert not {"kubernetes-version", "way-in", "aws-cli", "certificate"} & {*SLURM_CHECKS}
