"""A Slurm system on Google Cloud: policies, private machines, and the parts of its cluster."""

from typing import Any

import pytest

from tests.stacks.composition import google, judged
from tests.stacks.composition.composed import composed, stack_spec
from trainstack.preflight.gcp import apis

PAIR = ("large-slurm", "gcp")
CLUSTER = "hypercomputecluster/cluster:Cluster"
LUSTRE = {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a"}


def cluster(change: Any = None) -> dict[str, Any]:
    (found,) = composed(PAIR, change).all(CLUSTER).values()
    return dict(found)


def test_every_policy_holds() -> None:
    outcomes = judged.verdicts(judged.resources(composed(PAIR), "us-central1"), "large-slurm-gcp")
    assert judged.reported(outcomes, "fail") == judged.reported(outcomes, "undetermined") == []


def test_machines_are_private_and_people_log_in_by_os_login() -> None:
    login = cluster()["orchestrator"]["slurm"]["loginNodes"]
    assert (login["enablePublicIps"], login["enableOsLogin"]) == (False, True)
    rules = composed(PAIR).all("compute/firewall:Firewall").values()
    found = {one["sourceRanges"][0]: one["allows"] for one in rules if one["direction"] == "INGRESS"}
    assert "0.0.0.0/0" not in found
    assert found["35.235.240.0/20"] == [{"protocol": "tcp", "ports": ["22"]}]


def test_labels_of_the_stack_are_on_every_machine() -> None:
    slurm = cluster()["orchestrator"]["slurm"]
    labels = [slurm["loginNodes"]["labels"], *(one["computeInstance"]["labels"] for one in slurm["nodeSets"])]
    assert {one["trainstack-stack"] for one in labels} == {"dev"}
    assert [one.get("trainstack-node") for one in labels] == ["login", None, None]


def test_a_pool_is_a_nodeset_and_a_partition() -> None:
    found = cluster(lambda spec: spec["layout"]["pools"][0].update(min_nodes=2))
    slurm = found["orchestrator"]["slurm"]
    assert [(one["id"], one["staticNodeCount"], one["maxDynamicNodeCount"]) for one in slurm["nodeSets"]] == [
        ("h100", "2", "6"), ("cpu", "0", "4"),
    ]  # fmt: skip
    assert slurm["partitions"] == [{"id": name, "nodeSetIds": [name]} for name in ("h100", "cpu")]
    assert slurm["defaultPartition"] == "h100"


def test_one_partition_is_no_default() -> None:
    found = cluster(lambda spec: spec["layout"]["pools"].pop())
    assert "defaultPartition" not in found["orchestrator"]["slurm"]


def test_ways_to_buy_machines() -> None:
    def bought(**purchase: Any) -> Any:
        found = cluster(lambda spec: spec["layout"]["pools"][0].update(purchase=purchase))
        return found["computeResources"][0]["config"]

    name = "projects/p/reservations/r"
    assert bought(kind="flex_start") == {
        "newFlexStartInstances": {
            "machineType": "a3-megagpu-8g", "zone": "us-central1-a", "maxDuration": "604800s",
        }
    }  # fmt: skip
    assert bought(kind="reserved", id=name) == {
        "newReservedInstances": {"reservation": "projects/p/zones/us-central1-a/reservations/r"}
    }


def test_file_systems_are_mounted_on_all_machines() -> None:
    found = cluster(lambda spec: spec["data"].update(shared_fs=LUSTRE))
    slurm = found["orchestrator"]["slurm"]
    mounts = [{"id": "homes", "localMount": "/home"}, {"id": "lustre", "localMount": "/lustre"}]
    assert [one["id"] for one in found["storageResources"]] == ["homes", "lustre"]
    assert all(one["storageConfigs"] == mounts for one in (slurm["loginNodes"], *slurm["nodeSets"]))


@pytest.mark.parametrize(
    "data", [{}, {"shared_fs": LUSTRE}, {"on_destroy": "keep"}], ids=["plain", "lustre", "kept"]
)
def test_the_preflight_asks_for_what_is_made(data: dict[str, Any]) -> None:
    change = lambda spec: spec["data"].update(data)  # noqa: E731
    graph, spec = composed(PAIR, change), stack_spec(PAIR, change)
    types = {one.type for one in graph.cloud.asked if one.type.startswith("gcp:")}
    google.permissions_are_those_of({*types, "pulumi-python:dynamic/trainstack:LoginScript"}, spec)
    names = {one["service"] for one in graph.all("projects/service:Service").values()}
    assert names == {*apis.wanted_by(spec)}
