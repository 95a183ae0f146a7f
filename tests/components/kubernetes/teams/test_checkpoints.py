"""Checkpoint settings of a team's runs, and the one permission for it."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.queueing import own_pod
from components.kubernetes.queueing.admission import policies
from components.kubernetes.teams.checkpoints import TeamCheckpoints, TeamCheckpointsArgs
from tests.components.graph import Graph, deploy_graph


def made(keep_every_hours: int | None) -> Graph:
    args: TeamCheckpointsArgs = {
        "namespace": "team-vision",
        "uri": "s3://checkpoints/teams/vision",
        "interval_s": 1800,
        "keep_last": 30,
        "keep_every_hours": keep_every_hours,
    }

    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"urn": TeamCheckpoints("dev-vision", args).urn}

    return deploy_graph(program)


@pytest.mark.parametrize(
    ("hours", "more"), [(None, {}), (24, {"TRAINSTACK_CHECKPOINT_KEEP_EVERY_HOURS": "24"})]
)
def test_runs_find_the_policy_in_their_variables(hours: int | None, more: dict[str, str]) -> None:
    config = made(hours).find("ConfigMap")
    assert config["metadata"]["name"] == "trainstack-checkpoints"
    # Members read it and cannot change it.
    assert config["metadata"]["labels"] == {"trainstack.dev/given": "yes"}
    assert config["data"] == {
        "TRAINSTACK_CHECKPOINT_URI": "s3://checkpoints/teams/vision",
        "TRAINSTACK_CHECKPOINT_INTERVAL_S": "1800",
        "TRAINSTACK_CHECKPOINT_KEEP_LAST": "30",
        **more,
    }


def test_the_role_patches_pods_and_every_queued_namespace_has_the_policy_that_narrows_it() -> None:
    (rule,) = made(None).find("Role")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
    policy, binding = (body for body in policies([], []) if body["metadata"]["name"] == own_pod.NAME)
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["validationActions"] == ["Deny"]
