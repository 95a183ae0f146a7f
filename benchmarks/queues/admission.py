"""Jobs that Kueue admits per second with the queues of a medium stack, and with one plain queue, in turns.

    python benchmarks/queues/admission.py [ROUNDS]

The queues are those of the stack dev-aws: teams, gate and two pools, with room for all jobs. The plain
queue has one flavor without labels or taints, in no cohort, without preemption. The same jobs wait in both; a
round opens one of the two and drains it again, then the other. The clock runs from the opening until the last
job is admitted. The jobs have no pods. The binaries have to be built: `make binaries`.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from components.kubernetes.queueing import kueue, kueue_values
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from infra.naming import team_namespace
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running

ROUNDS, JOBS = 7, 60
POLL_S, PATIENCE_S = 0.1, 120.0
TEAMS: list[TeamArgs] = [
    {"name": "Research", "weight": 2, "gpus": {"a100": 8, "l4": 2}},
    {"name": "Vision", "weight": 1, "gpus": {"a100": 8, "l4": 2}},
    {"name": "Applied ML", "weight": 1, "gpus": {"a100": 0, "l4": 4}},
]
GATE: GateArgs = {"nodes": {"a100": 2}, "scheduled": True}


def pool(name: str, nodes: int, gpus: int, usd_per_hour: float) -> FlavorArgs:
    """A pool that holds all jobs by itself."""
    labels = {"trainstack.dev/pool": name}
    return {
        "name": name, "node_labels": labels, "max_nodes": nodes, "cpu": 7 * gpus, "memory_gib": 28 * gpus,
        "gpus": gpus, "usd_per_hour": usd_per_hour,
    }  # fmt: skip


POOLS = [pool("a100", 24, 8, 32.77), pool("l4", 192, 1, 0.39)]


def plain(jobs: int) -> list[Object]:
    """One queue with room for all jobs, and its namespace."""
    name = "plain"
    amounts = {"cpu": jobs, "memory": f"{jobs}Gi", "nvidia.com/gpu": jobs}
    quota = [{"name": key, "nominalQuota": amount} for key, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": name, "resources": quota}]}
    spec: Mapping[str, Mapping[str, Any]] = {
        "ResourceFlavor": {},
        "ClusterQueue": {"namespaceSelector": {}, "resourceGroups": [group]},
    }
    local = {"name": "default", "namespace": name}
    return [
        _namespace(name, {}),
        *({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": said}
          for kind, said in spec.items()),
        {"apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": name}},
    ]  # fmt: skip


def stack() -> list[Object]:
    """The queues of the stack, and the namespaces of its teams."""
    namespaces = [team_namespace(team["name"]) for team in TEAMS]
    made = [_namespace(name, {kueue.TEAM_LABEL: name}) for name in namespaces]
    made.append(_namespace(kueue.GATE_NAMESPACE, {}))
    return made + [body for layer in kueue.layers(POOLS, TEAMS, GATE) for body in layer]


def submit(api: KubernetesApi, queues: Sequence[str], jobs: int) -> None:
    """Let jobs wait in stopped queues."""
    _stop(api, queues, "HoldAndDrain")
    for index in range(jobs):
        api.create(_job(queues[index % len(queues)], f"job-{index}"))
    _until(lambda: _count(api, queues, "pendingWorkloads") == jobs)


def rate(api: KubernetesApi, queues: Sequence[str], jobs: int) -> float:
    """Jobs a second from the opening of the queues to the last admission; they are drained afterwards."""
    _stop(api, queues, "None")
    began = time.monotonic()
    _until(lambda: _count(api, queues, "admittedWorkloads") == jobs)
    found = jobs / (time.monotonic() - began)
    _stop(api, queues, "HoldAndDrain")
    _until(lambda: _count(api, queues, "reservingWorkloads") == 0)
    return found


def _stop(api: KubernetesApi, queues: Iterable[str], policy: str) -> None:
    for name in queues:
        api.patch(API_VERSION, "ClusterQueue", name, {"spec": {"stopPolicy": policy}})


def _count(api: KubernetesApi, queues: Iterable[str], what: str) -> int:
    """Of the workloads of all queues; asking for the workloads themselves would be much of the work."""
    found = (api.get(API_VERSION, "ClusterQueue", name) for name in queues)
    return sum(int((queue.get("status") or {}).get(what) or 0) for queue in found)


def _until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the queues did not get there in {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def _namespace(name: str, labels: Mapping[str, str]) -> Object:
    managed = {kueue_values.MANAGED_LABEL: kueue_values.MANAGED, **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": managed}}


def _job(namespace: str, name: str) -> Object:
    asked = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "example.com/none:1", "resources": {"limits": asked}}
    tolerated = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    spec = {"restartPolicy": "Never", "containers": [container], "tolerations": [tolerated]}
    labels = {kueue.QUEUE_NAME_LABEL: "default"}
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        # No controller creates pods for it, so the Job controller does not share the processors with Kueue.
        "spec": {"suspend": True, "managedBy": "trainstack.dev/none", "template": {"spec": spec}},
    }  # fmt: skip


def main() -> None:
    """Print the rates of every round, their medians, and the ratio."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    values = kueue_values.values(claimed={})
    sides = {"stack": [team_namespace(team["name"]) for team in TEAMS], "plain": ["plain"]}
    rows: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        running(ControlPlaneOptions(Path(folder) / "run", addons={"kueue": values})) as plane,
        plane.api() as api,
    ):
        for body in (*stack(), *plain(JOBS)):
            api.apply(body)
        for queues in sides.values():
            submit(api, queues, JOBS)
        # The other one first each time; the first round warms up.
        for index in range(rounds + 1):
            turn = sorted(sides, reverse=bool(index % 2))
            row = {name: rate(api, sides[name], JOBS) for name in turn}
            print(
                f"round {index}: " + ", ".join(f"{name} {row[name]:.1f} jobs/s" for name in turn), flush=True
            )
            rows += [row] if index else []
    medians = {name: statistics.median(row[name] for row in rows) for name in sides}
    ratios = sorted(row["stack"] / row["plain"] for row in rows)
    print(f"medians: stack {medians['stack']:.1f} jobs/s, plain {medians['plain']:.1f} jobs/s")
    print(f"ratio: median {statistics.median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
