"""The controller of windows: configuration, permissions, and the checks of queues."""

import json
from typing import Any

import pytest

from agents.capacity_windows.windows import read
from components.kubernetes.capacity.args import WindowArgs
from components.kubernetes.capacity.capacity_windows import NAMESPACE, CapacityWindows
from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.checks import KEEPER
from components.kubernetes.queueing.quota_rules import check
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph
from tests.components.kubernetes.queueing.objects import TEAMS
from tests.components.kubernetes.queueing.pools import GATE, cpu_flavor, gpu_flavor

WINDOW: WindowArgs = {
    "block": {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-08T11:30:00Z", "drain_minutes": 40}
}
POOL: FlavorArgs = {**gpu_flavor("h100"), "own_queue": True, "window": WINDOW}


@pytest.fixture(scope="module")
def made() -> Graph:
    args: Any = {"windows": {"h100": WINDOW}, "image": "example.com/python@sha256:" + "0" * 64}
    return deploy_graph(lambda: {"program": CapacityWindows("capacity", args).program})


def test_the_program_gets_the_windows(made: Graph) -> None:
    (container,) = made.find("Deployment")["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    windows = read(words[words.index("--windows") + 1])
    assert windows["window-h100"].pool == "h100" and windows["window-h100"].block


def test_it_may_change_workloads_and_nothing_of_what_runs(made: Graph) -> None:
    may = {
        (resource, verb)
        for rule in made.find("ClusterRole")["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    writes = {pair for pair in may if pair[1] not in ("get", "list", "watch")}
    assert writes == {
        ("workloads", "patch"),
        ("workloads/status", "patch"),
        ("admissionchecks/status", "patch"),
        ("events", "create"),
    }
    assert not any("secrets" in resource or "*" in (resource, verb) for resource, verb in may)


def test_it_starts_once_its_rights_and_the_fence_around_it_are_there(made: Graph) -> None:
    waits = made.waits_for("Deployment:capacity-keeper")
    assert {"ClusterRoleBinding:capacity-binding", "NetworkPolicy:capacity-policy"} <= waits
    assert made.find("Namespace")["metadata"]["name"] == NAMESPACE


def test_only_the_queues_of_the_pool_ask_it() -> None:
    flavors = [cpu_flavor(), POOL]
    bodies = [body for layer in kueue.layers(flavors, TEAMS, GATE) for body in layer]
    (found,) = [body for body in bodies if body["kind"] == "AdmissionCheck"]
    assert found["metadata"]["name"] == "window-h100" and found["spec"] == {"controllerName": KEEPER}
    for body in bodies:
        if body["kind"] == "ClusterQueue":
            asked = "h100" in json.dumps(body["spec"]["resourceGroups"])
            expected = [{"name": "window-h100", "onFlavors": ["h100"]}]
            checks = body["spec"].get("admissionChecksStrategy", {}).get("admissionChecks", [])
            assert checks == (expected if asked else [])


def test_a_pool_with_a_window_has_a_queue_of_its_own() -> None:
    shared: FlavorArgs = {**POOL, "own_queue": False}
    with pytest.raises(UserError, match="idle"):
        check([cpu_flavor(), shared], TEAMS, GATE)
