"""Nodes that a plan ends."""

from typing import Any

import pytest

from infra.engine.plan import PlannedStep
from trainstack.plans.drains import drains

GROUP = "aws:eks/nodeGroup:NodeGroup"
INPUTS = {
    "scalingConfig": {"minSize": 0, "maxSize": 4},
    "updateConfig": {"maxUnavailablePercentage": 33, "updateStrategy": "MINIMAL"},
}


def said(operation: str, *changed: str, type: str = GROUP, **inputs: Any) -> list[str]:
    return list(drains([PlannedStep(operation, type, "a100-nodes", changed, {**INPUTS, **inputs})]))


@pytest.mark.parametrize("changed", ["version", "releaseVersion", "launchTemplate.version"])
def test_another_image_or_template_drains_every_node(changed: str) -> None:
    (line,) = said("update", changed, "labels.team")
    assert line.startswith("a100-nodes: ") and line.endswith(changed) and "33 %" in line and "up to 4" in line


def test_a_replaced_group_ends_all_its_nodes() -> None:
    (line,) = said("replace", "subnetIds[0]")
    assert "up to 4" in line and "is replaced" in line and line.endswith("subnetIds[0]")


def test_a_deleted_group_ends_all_its_nodes() -> None:
    (line,) = said("delete")
    assert line.startswith("a100-nodes: ") and "up to 4" in line


@pytest.mark.parametrize("changed", ["scalingConfig.maxSize", "labels.team", "tagsAll", "nodeRepairConfig"])
def test_what_eks_changes_beside_the_nodes_drains_none(changed: str) -> None:
    assert said("update", changed) == []


def test_new_groups_and_other_resources_drain_none() -> None:
    assert said("create") == []
    assert said("update", "version", type="aws:eks/cluster:Cluster") == []


def test_a_surge_is_in_the_line() -> None:
    (line,) = said("update", "version", updateConfig={"maxUnavailable": 1})
    assert "1 at a time, new" in line


POOL = "gcp:container/nodePool:NodePool"
BOUNDS = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}


@pytest.mark.parametrize(
    "changed", ["nodeConfig.diskSizeGb", "nodeConfig.linuxNodeConfig.sysctls.net.ipv4.tcp_rmem", "version"]
)
def test_gke_replaces_nodes_for_another_operating_system_or_disk(changed: str) -> None:
    settings = {"maxSurge": 0, "maxUnavailable": 2}
    (line,) = said("update", changed, type=POOL, autoscaling=BOUNDS, upgradeSettings=settings)
    assert "up to 8" in line and "2 at a time, old" in line and changed in line


@pytest.mark.parametrize(
    "changed",
    ["autoscaling.totalMaxNodeCount", "nodeConfig.resourceLabels.owner", "nodeConfig.labels", "management"],
)
def test_what_gke_changes_beside_the_nodes_drains_none(changed: str) -> None:
    assert said("update", changed, type=POOL, autoscaling=BOUNDS) == []


def test_a_pool_that_leaves_a_zone_ends_the_nodes_there() -> None:
    before, after = {"nodeLocations": ["a", "b", "c"]}, {"nodeLocations": ["d", "c"]}
    step = PlannedStep("update", POOL, "l4-nodes", ("nodeLocations[0]",), after, before)
    (line,) = drains([step])
    assert line.startswith("l4-nodes: ") and " in a, b " in line and line.endswith(" nodeLocations")
    grown = PlannedStep(
        "update", POOL, "l4-nodes", ("nodeLocations[2]",), before, {"nodeLocations": ["a", "b"]}
    )
    assert list(drains([grown])) == []


def test_a_pool_that_is_replaced_with_its_cluster_has_no_property() -> None:
    (line,) = said("replace", type=POOL, autoscaling=BOUNDS)
    assert line.endswith("a dependency")


def test_a_replaced_pool_ends_all_its_nodes() -> None:
    (line,) = said("replace", "nodeConfig.reservationAffinity", type=POOL, autoscaling=BOUNDS)
    assert "is replaced" in line and "up to 8" in line
