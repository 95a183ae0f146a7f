"""Arguments that GKE or a security review would reject are rejected before anything is created."""

from typing import Any

import pytest

from infra.errors import UserError
from tests.components.gcp.cluster.clusters import MAINTENANCE, PLATFORM, POOL, cluster


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"name": "dev_gcp"}, ["name"]),
        ({"name": "a" * 41}, ["name"]),
        ({"zones": []}, ["zones"]),
        ({"zones": ["us-central1-a", "us-central1-a"]}, ["zones"]),
        ({"zones": ["us-central1-z", "europe-west4-a"]}, ["zones[0]", "zones[1]"]),
        ({"channel": "None"}, ["channel"]),
        ({"endpoint": "public"}, ["endpoint"]),
        ({"api_access": ["203.0.113.0/24"]}, ["api_access"]),
        ({"endpoint": "ip"}, ["api_access"]),
        ({"endpoint": "ip", "api_access": ["0.0.0.0/0"]}, ["api_access[0]"]),
        ({"endpoint": "ip", "api_access": ["10.0.0.0/8", "office"]}, ["api_access[1]"]),
        ({"endpoint": "ip", "api_access": [f"203.0.113.{n}/32" for n in range(101)]}, ["api_access"]),
        ({"admins": []}, ["admins"]),
        ({"admins": [PLATFORM, PLATFORM]}, ["admins"]),
        ({"admins": ["platform@example.com", "allUsers"]}, ["admins[0]", "admins[1]"]),
        ({"maintenance": {**MAINTENANCE, "days": ["SA"], "hours": 6}}, ["maintenance.hours"]),
        ({"maintenance": {**MAINTENANCE, "days": [], "hours": 24}}, ["maintenance.hours"]),
        ({"groups": "ml@example.com"}, ["groups"]),
        ({"system_pool": {**POOL, "min_nodes": 7}}, ["system_pool.min_nodes"]),
        ({"system_pool": {**POOL, "min_nodes": 0, "max_nodes": 0}}, ["system_pool.max_nodes"]),
        ({"system_pool": {**POOL, "machine": "a3-megagpu-8g"}}, ["system_pool.machine"]),
        ({"system_pool": {**POOL, "machine": "e2-standard-5"}}, ["system_pool.machine"]),
        ({"name": "", "admins": [], "channel": "", "zones": []}, ["name", "zones", "channel", "admins"]),
    ],
)
def test_what_gke_or_a_security_review_would_refuse_is_refused(
    changes: dict[str, Any], paths: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        cluster(**changes)

    assert [problem.path for problem in refused.value.problems] == paths


def test_the_shortest_windows_that_gke_takes_are_accepted() -> None:
    cluster(maintenance={**MAINTENANCE, "days": ["SA"], "hours": 12})
    with pytest.raises(UserError) as refused:
        cluster(maintenance={**MAINTENANCE, "days": ["SA", "SU"], "hours": 5})

    assert "are 40 hours" in refused.value.problems[0].rule
    assert "Set 6 hours" in refused.value.problems[0].fix
