"""Which nodes a plan ends."""

from typing import Any

import pytest

from infra.drains import drains
from infra.engine.plan import Step

GROUP = "aws:eks/nodeGroup:NodeGroup"
INPUTS = {
    "scalingConfig": {"minSize": 0, "maxSize": 4},
    "updateConfig": {"maxUnavailablePercentage": 33, "updateStrategy": "MINIMAL"},
}


def said(operation: str, *changed: str, type: str = GROUP, **inputs: Any) -> list[str]:
    return list(drains([Step(operation, type, "a100-nodes", changed, {**INPUTS, **inputs})]))


@pytest.mark.parametrize("changed", ["version", "releaseVersion", "launchTemplate.version"])
def test_another_image_or_template_drains_every_node(changed: str) -> None:
    (line,) = said("update", changed, "labels.team")
    assert line == (
        "a100-nodes: every node (up to 4) is drained and replaced, 33 % at a time, old ones before new ones, "
        f"because of {changed}"
    )


def test_a_replaced_group_ends_all_its_nodes() -> None:
    (line,) = said("replace", "subnetIds[0]")
    assert "every node (up to 4) ends: the group is replaced, because of subnetIds[0]" in line


def test_a_deleted_group_ends_all_its_nodes() -> None:
    assert said("delete") == ["a100-nodes: every node (up to 4) ends"]


@pytest.mark.parametrize("changed", ["scalingConfig.maxSize", "labels.team", "tagsAll", "nodeRepairConfig"])
def test_what_eks_changes_beside_the_nodes_drains_none(changed: str) -> None:
    assert said("update", changed) == []


def test_new_groups_and_other_resources_drain_none() -> None:
    assert said("create") == []
    assert said("update", "version", type="aws:eks/cluster:Cluster") == []


def test_a_surge_is_told() -> None:
    (line,) = said("update", "version", updateConfig={"maxUnavailable": 1})
    assert "1 at a time, new ones before old ones" in line
