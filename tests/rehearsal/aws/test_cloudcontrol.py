"""AWS PCS by Cloud Control: a desired state is judged by the service's own rules."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.aws.cloud import EmulatedAws
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.slurm.pcs import PcsClusters
from tests.rehearsal.aws.rules.world import trust
from tests.rehearsal.driver import CACHE, Driver, refused

RESOURCE = "cloudcontrol/resource:Resource"
CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"
State_ = dict[str, Any]


class Pcs(Driver):
    """A network, a launch template and an instance profile."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("aws", state, EmulatedAws(state, schemas, folder), {"region": "us-east-1"})
        vpc = self.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")["id"]
        self.subnet = self.create("ec2/subnet:Subnet", "subnet", vpcId=vpc, cidrBlock="10.0.0.0/24")["id"]
        self.template = self.create("ec2/launchTemplate:LaunchTemplate", "nodes")["id"]
        self.profile = self.identity("nodes", path="/aws-pcs/")

    def identity(self, name: str, **role: Any) -> str:
        made = self.create("iam/role:Role", name, assumeRolePolicy=trust("ec2.amazonaws.com"), **role)
        profile = self.create("iam/instanceProfile:InstanceProfile", name, role=made["name"])
        return str(profile["arn"])

    def resource(self, kind: str, state: State_, name: str = "") -> State_:
        """The properties of a new resource."""
        outputs = self.create(
            RESOURCE, name or kind.rpartition(":")[2], typeName=kind, desiredState=json.dumps(state)
        )
        return dict(json.loads(outputs["properties"]))

    def cluster(self, **more: Any) -> State_:
        return {
            "Name": "large",
            "Size": "SMALL",
            "Scheduler": {"Type": "SLURM", "Version": "25.11"},
            "Networking": {"SubnetIds": [self.subnet]},
            **more,
        }

    def group(self, cluster: str, **more: Any) -> State_:
        return {
            "ClusterId": cluster,
            "Name": "p4d",
            "CustomLaunchTemplate": {"TemplateId": self.template, "Version": "1"},
            "IamInstanceProfileArn": self.profile,
            "InstanceConfigs": [{"InstanceType": "p4d.24xlarge"}],
            "ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 16},
            "SubnetIds": [self.subnet],
            **more,
        }


@pytest.fixture
def pcs(tmp_path: Path) -> Iterator[Pcs]:
    schemas = Schemas("aws", CACHE)
    found = Pcs(tmp_path, schemas)
    yield found
    found.state.close()
    schemas.close()


def setting(name: str, value: str = "1") -> State_:
    return {"SlurmConfiguration": {"SlurmCustomSettings": [{"ParameterName": name, "ParameterValue": value}]}}


def test_the_service_adds_what_is_read_only(pcs: Pcs) -> None:
    cluster = pcs.resource(CLUSTER, pcs.cluster())
    group = pcs.resource(GROUP, pcs.group(cluster["Id"]))
    queue = pcs.resource(
        QUEUE,
        {
            "ClusterId": cluster["Id"],
            "Name": "p4d",
            "ComputeNodeGroupConfigurations": [{"ComputeNodeGroupId": group["Id"]}],
        },
    )
    assert {one["Status"] for one in (cluster, group, queue)} == {"ACTIVE"}
    assert [one["Type"] for one in cluster["Endpoints"]] == ["SLURMCTLD", "SLURMDBD"]
    assert group["Arn"].endswith(f":cluster/{cluster['Id']}/computenodegroup/{group['Id']}")
    assert cluster["SlurmConfiguration"]["AuthKey"]["SecretArn"].startswith("arn:aws:secretsmanager:")


BROKEN: dict[str, tuple[State_, str]] = {
    "no size": ({"Size": None}, "#/Size"),
    "an unknown size": ({"Size": "TINY"}, "not a valid enum value"),
    "a name that the service keeps": ({"Name": "pcs_large"}, "does not match pattern"),
    "a name too long": ({"Name": "a" * 41}, "outside of 3 to 40"),
    "a version that ended long ago": ({"Scheduler": {"Type": "SLURM", "Version": "22.05"}}, "22.05 is not"),
    "a scheduler without version": ({"Scheduler": {"Type": "SLURM"}}, "required key [Version]"),
    "a read-only property": ({"Arn": "arn:aws:pcs:::x"}, "extraneous key [Arn]"),
    "a property of no API": ({"Nodes": 4}, "extraneous key [Nodes]"),
    "a setting of Slurm that cannot be set": (setting("SlurmdTimeout"), "SlurmdTimeout is not a supported"),
    "tenths of a second": (
        {"SlurmConfiguration": {"ScaleDownIdleTimeInSeconds": 0}}, "outside of 1 to 10000000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_the_schema_of_a_cluster_does_not_allow_is_refused(pcs: Pcs, case: str) -> None:
    change, text = BROKEN[case]
    reasons = pcs.check(RESOURCE, typeName=CLUSTER, desiredState=json.dumps(pcs.cluster(**change)))
    assert text in reasons["desiredState"]


def test_a_group_needs_a_cluster_with_room_and_a_role_for_pcs(pcs: Pcs) -> None:
    cluster = pcs.resource(CLUSTER, pcs.cluster())["Id"]
    refused("pcs_none does not exist", pcs.resource, GROUP, pcs.group("pcs_none"))
    scaled = {"ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 33}}
    refused("33 compute nodes", pcs.resource, GROUP, pcs.group(cluster, **scaled))
    plain = {"IamInstanceProfileArn": pcs.identity("plain")}
    refused("/aws-pcs/", pcs.resource, GROUP, pcs.group(cluster, **plain))
    wrong = pcs.group(cluster, **setting("TRESBillingWeights"))
    reasons = pcs.check(RESOURCE, typeName=GROUP, desiredState=json.dumps(wrong))
    assert "TRESBillingWeights is not" in reasons["desiredState"]
    pcs.resource(GROUP, pcs.group(cluster, IamInstanceProfileArn=pcs.identity("AWSPCS-nodes")))


@pytest.mark.parametrize(
    ("kind", "change", "replaces"),
    [
        (CLUSTER, {"Size": "MEDIUM"}, True),
        (CLUSTER, {"Scheduler": {"Type": "SLURM", "Version": "25.05"}}, False),
        (CLUSTER, setting("JobRequeue"), False),
        (GROUP, {"InstanceConfigs": [{"InstanceType": "p5.48xlarge"}]}, True),
        (GROUP, {"ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 8}}, False),
        (GROUP, {"AmiId": "ami-0123456789abcdef0"}, False),
        (QUEUE, {"Name": "other"}, True),
    ],
)
def test_a_change_of_a_create_only_property_replaces(
    pcs: Pcs, kind: str, change: State_, *, replaces: bool
) -> None:
    cluster = pcs.resource(CLUSTER, pcs.cluster(), "cluster")["Id"]
    before = {CLUSTER: pcs.cluster(), GROUP: pcs.group(cluster), QUEUE: {"ClusterId": cluster, "Name": "one"}}
    if kind != CLUSTER:
        pcs.resource(kind, before[kind], "changed")
    new = json.dumps({**copy.deepcopy(before[kind]), **change})
    found = pcs.diff("cluster" if kind == CLUSTER else "changed", typeName=kind, desiredState=new)
    assert ("desiredState" in found.changed, bool(found.replaces)) == (True, replaces)


def test_queues_and_groups_are_deleted_before_the_cluster(pcs: Pcs) -> None:
    cluster = pcs.resource(CLUSTER, pcs.cluster())["Id"]
    pcs.resource(GROUP, pcs.group(cluster))
    refused("still used by p4d", pcs.delete, "Cluster")
    pcs.delete("ComputeNodeGroup")
    pcs.delete("Cluster")


def test_another_type_has_its_desired_state_alone(pcs: Pcs) -> None:
    assert pcs.resource("AWS::Logs::LogGroup", {"LogGroupName": "x"}) == {"LogGroupName": "x"}


def test_the_slurm_of_a_deleted_cluster_ends(pcs: Pcs, tmp_path: Path) -> None:
    """A daemon with live workloads does not end by itself."""
    cluster = pcs.resource(CLUSTER, pcs.cluster())["Id"]
    clusters, ended = PcsClusters(pcs.state, tmp_path), []
    node = SimpleNamespace(name="p4d-1", address="127.0.1.1")
    slurm: Any = SimpleNamespace(nodes=[node], folder=tmp_path / "none", stop=lambda: ended.append(cluster))
    system: Any = None
    clusters._clusters._running[cluster] = system, slurm
    assert [node.name for _, node, _ in clusters.live()] == ["p4d-1"] and ended == []
    pcs.delete("Cluster")
    assert clusters.live() == [] and ended == [cluster]
    clusters.stop()


def test_a_name_is_free_once_its_cluster_is_deleted(pcs: Pcs) -> None:
    pcs.resource(CLUSTER, pcs.cluster(), "one")
    refused("already exists", pcs.resource, CLUSTER, pcs.cluster(), "two")
    pcs.delete("one")
    pcs.resource(CLUSTER, pcs.cluster(), "two")
