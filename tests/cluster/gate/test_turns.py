"""Every node of a pool is validated in turns, by the real kubectl, on the real queues."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.quotas import GateArgs, TeamArgs
from components.kubernetes.validation.schedule import SmokeSchedule
from components.kubernetes.validation.smoke_home import SmokeHome
from infra.outputs.cluster import ValidationRun
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.gate.conftest import SMOKE
from tests.cluster.manifests import manifests
from tests.cluster.queues.lab import flavor, machines, queues
from tests.components.graph import deploy_graph
from trainstack.cli import validate

POOL = flavor("turns", "g6.2xlarge", 3)
TEAM: list[TeamArgs] = [{"name": "Turns", "weight": 1}]
GATE: GateArgs = {"nodes": {"turns": 2}, "scheduled": True}
RUN = ValidationRun(
    pool="turns", job="-", namespace=kueue.GATE_NAMESPACE, result_uri="-", schedule="smoke-schedule-turns"
)
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")


def composed() -> list[Any]:
    def program() -> dict[str, Any]:
        home = SmokeHome("turns", {"namespace": kueue.GATE_NAMESPACE})
        run: Any = {
            **SMOKE, "pool": "turns", "namespace": home.namespace,
            "node": {"cpu": 4, "memory_gib": 8, "gpus": 1},
            "queue": kueue.SCHEDULE_QUEUE, "priority": kueue.BACKGROUND, "pool_labels": POOL["node_labels"],
        }  # fmt: skip
        return {"cron": SmokeSchedule("turns", {"schedule": "0 5 31 2 *", "run": run}).cron_job}

    # Pods without machines start without their files and names.
    needed = ("ServiceAccount", "CronJob")
    own = [body for body in manifests(deploy_graph(program)) if body["kind"] in needed]
    return [body for body in own if body["metadata"]["namespace"] == kueue.GATE_NAMESPACE]


@pytest.fixture
def pool(api: KubernetesApi) -> Iterator[None]:
    """Three idle nodes, their queues, and a schedule that is never due."""
    with machines(api, [POOL], {"turns": "g6.2xlarge"}), queues(api, [POOL], TEAM, GATE):
        made = composed()
        for body in made:
            api.apply(body)
        yield
        for body in reversed(made):
            metadata = body["metadata"]
            api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata["namespace"])


def test_a_bad_node_is_named_by_the_groups_that_it_is_in(
    plane: ControlPlane,
    pool: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(validate, "LOOK_S", 0.2)

    def ask(arguments: Sequence[str], given: str | None = None) -> str:
        if given:
            given = living(given, "turns-1")
        command = ["kubectl", f"--kubeconfig={plane.kubeconfig}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout

    assert not validate.in_turns(ask, RUN, "turns", 60).passed
    assert capsys.readouterr().out.splitlines() == [
        "turns-0 + turns-1: FAIL: slow",
        "turns-1 + turns-2: FAIL: slow",
        "turns-2 + turns-0: PASS",
        "suspect: turns-1",
    ]


def living(job: str, bad: str) -> str:
    """The Job, with annotations by which its fake pods live: they fail on the bad node's groups."""
    body = json.loads(job)
    fails = f'"{bad}"' in job
    body["spec"]["template"]["metadata"]["annotations"] |= {
        "trainstack.dev/seconds": "0.3s",
        "trainstack.dev/exit-code": str(int(fails)),
        "trainstack.dev/message": "FAIL: slow" if fails else "PASS",
    }
    return json.dumps(body)
