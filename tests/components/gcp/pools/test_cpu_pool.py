from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.pools.cpu_pool import GcpCpuPool, GcpCpuPoolArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph


def deployed(**changes: Any) -> Graph:
    args = {
        "pool": "data",
        "purpose": "data",
        "cluster": "dev-gcp",
        "location": "us-central1",
        "zones": ["us-central1-a", "us-central1-b"],
        "machine": "n2-standard-8",
        "node_service_account": "nodes@acme-ml.iam.gserviceaccount.com",
        "disk_gib": 100,
        "purchase": "on_demand",
        "min_nodes": 0,
        "max_nodes": 8,
        "pods_per_node": 32,
        "resource_labels": {},
    }

    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpCpuPool("dev-gcp-data", cast(GcpCpuPoolArgs, {**args, **changes}))
        return {"labels": made.labels}

    return deploy_graph(program)


def test_jobs_need_no_toleration_and_other_pods_stay_away_while_they_can() -> None:
    made = deployed().find("NodePool")
    assert made["nodeConfig"]["taints"] == [
        {"key": "trainstack.dev/pool", "value": "data", "effect": "PREFER_NO_SCHEDULE"}
    ]
    assert "guestAccelerators" not in made["nodeConfig"]


def test_new_nodes_start_before_old_ones_end() -> None:
    settings = deployed().find("NodePool")["upgradeSettings"]
    assert settings["maxSurge"] > 0 and settings["maxUnavailable"] == 0


def test_spot_nodes_start_where_they_stay_longest() -> None:
    spot = deployed(purchase="spot").find("NodePool")
    assert spot["autoscaling"]["locationPolicy"] == "ANY" and spot["nodeConfig"]["spot"] is True
    assert deployed().find("NodePool")["autoscaling"]["locationPolicy"] == "BALANCED"


@pytest.mark.parametrize(
    ("machine", "disk"), [("n2-standard-8", "pd-balanced"), ("c4-standard-8", "hyperdisk-balanced")]
)
def test_the_boot_disk_is_one_that_the_series_takes(machine: str, disk: str) -> None:
    assert deployed(machine=machine).find("NodePool")["nodeConfig"]["diskType"] == disk


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"machine": "g2-standard-48"}, "no CPU type for a pool"),
        ({"purchase": "reserved"}, "purchase-needs-gpus"),
        ({"max_nodes": 0}, "1 to 1000 nodes"),
    ],
)
def test_what_cannot_run_is_refused(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        deployed(**changes)
