"""The Job that `up` waits for in place of the validation's own, which is queued (docs/adr/0010)."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import batch

from components.base import Child
from components.kubernetes import access
from components.kubernetes.access import bound_role, may
from components.kubernetes.network_policies import restricted
from components.kubernetes.programs.program import Program
from components.kubernetes.waiting.job import WaitingProgram, waiting_job
from components.kubernetes.waiting.namespace import closed_namespace

# Not in the validation's namespace, where every pod is queued: this one must never wait in a queue.
NAMESPACE = "trainstack-watch"
NAME = "smoke-watch"
PROGRAM = Program("agents.waiting.watch", ["agents.shared.kueue", "smoke_training.verdict_record"])


@dataclass(frozen=True)
class Watched:
    """The Job to watch, and the time limits of its phases, seconds."""

    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    uid: pulumi.Input[str]
    pool: str
    queue_s: int
    start_s: int
    total_s: int


def rights(name: str, namespace: pulumi.Input[str], child: Child) -> list[pulumi.Resource]:
    """The watchers' namespace, closed to all, and an account that may read runs in `namespace` only."""
    closed, account = closed_namespace(f"{name}-watch", NAMESPACE, NAME, restricted(), child)
    rules = [may("batch", "jobs", "get"), may("", "pods", "list"), may("kueue.x-k8s.io", "workloads", "list")]
    reader = access.account(NAME, NAMESPACE)
    binding = bound_role(f"{name}-watch", NAME, rules, reader, child, namespace=namespace, needs=[account])
    return [closed, account, binding]


def watcher(name: str, watched: Watched, image: pulumi.Input[str], child: Child) -> batch.v1.Job:
    """The Job, named as the watched one; it fails, with the verdict, unless that one completes."""
    given = {
        "namespace": watched.namespace,
        "job": watched.name,
        # Another Job of the same name is another run: it gets a watcher of its own.
        "uid": watched.uid,
        "pool": watched.pool,
        "queue-seconds": str(watched.queue_s),
        "start-seconds": str(watched.start_s),
        "total-seconds": str(watched.total_s),
    }
    # Dependents of the namespace of the runs depend on the watchers' permissions there, too (`SmokeHome`).
    namespace = pulumi.Output.from_input(watched.namespace).apply(lambda _: NAMESPACE)
    waits = WaitingProgram(PROGRAM, given, watched.name, namespace, NAME, image, watched.total_s)
    return waiting_job(f"{name}-watch", waits, [], child)
