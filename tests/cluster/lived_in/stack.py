"""A stack that three teams use: the shipped dev-aws on a real control plane, with their jobs.

The program runs in this process, so that a transition is an edit of its spec. Nodes of KWOK stand beside the
emulated ones: pods with `ON_KWOK` run there without a process; all others run on the emulated nodes.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.kueue import GPU_TAINT
from infra.engine.plan import PlannedStep, PreviewPlan
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, choose
from rehearsal.controlplane.api import Access, KubernetesApi
from rehearsal.controlplane.nodes import GPU, KwokPool, pool_nodes
from rehearsal.realcluster.real_provider import CREDENTIAL, FOLDER
from tests.rehearsal.day2.changes import Edit
from tests.rehearsal.day2.stack import AWS, CACHE
from tests.rehearsal.frugal import FRUGAL, FrugalStack, select
from trainstack.cli.operations.jobs_in_use import jobs_in_use, resume_queues

# The name of the shipped stack, under which the command finds it; its program calls it otherwise.
STACK = "dev-aws"
# Label and taint of the nodes that KWOK keeps.
ON_KWOK = {"tests.trainstack.dev/kwok": "yes"}
KWOK_TAINT = {"key": "tests.trainstack.dev/kwok", "value": "yes", "effect": "NoSchedule"}
# The catalog has machines with GPUs only: of the third, the 16 vCPU are used.
_MACHINES = {"a100": ("p4d.24xlarge", 4), "l4": ("g6.2xlarge", 8), "cpu": ("g6.4xlarge", 4)}


@dataclass
class LivedIn:
    """The running stack; a transition is one or more edits, on top of those before."""

    rehearsal: Rehearsal
    api: KubernetesApi
    stack: FrugalStack
    edits: tuple[Edit, ...] = ()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return administrators(self.rehearsal.home)

    def planned(self, *edits: Edit) -> list[PlannedStep]:
        """The steps of an `up` with further edits."""
        plan = PreviewPlan()
        running = self.stack.running(AWS.program(*self.edits, *edits))
        cast(Any, plan.listening(lambda on_event: cast(Any, running.preview(on_event=on_event))))(
            lambda _: None
        )
        return plan.steps

    def up(self, *edits: Edit) -> Mapping[str, int]:
        """Deploy with further edits; returns the number of resources by operation."""
        self.edits += edits
        self.stack = self.stack.running(AWS.program(*self.edits))
        changed = self.stack.up().summary.resource_changes or {}
        return {str(getattr(kind, "value", kind)): count for kind, count in changed.items()}

    def announced(self, *edits: Edit) -> list[tuple[str, str]]:
        """Effects and names of jobs that `trainstack preview` shows for further edits."""
        with jobs_in_use(cast(Any, self.stack), self.rehearsal, AWS.spec(*self.edits, *edits)) as jobs:
            return [(one.effect, f"{one.job.namespace}/{one.job.name}") for one in jobs.effects]

    def change(self, *edits: Edit, now: bool = False) -> None:
        """What `trainstack up` does with further edits."""
        with jobs_in_use(cast(Any, self.stack), self.rehearsal, AWS.spec(*self.edits, *edits)) as jobs:
            jobs.drain(now=now)
        try:
            self.up(*edits)
        finally:
            resume_queues(cast(Any, self.stack), self.rehearsal)

    def reset(self) -> None:
        """Deploy the shipped spec again, with all nodes."""
        if self.edits:
            self.edits = ()
            self.up()
        add_nodes(self.api)


@contextmanager
def lived_in(folder: Path) -> Iterator[LivedIn]:
    """The deployed stack with nodes of KWOK, without users; its processes end with the context."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(CACHE)
    home = folder / "rehearsal"
    choose(home, ClusterKind.REAL, None, {})
    rehearsal = Rehearsal(home)
    try:
        stack = select(rehearsal.environment() | FRUGAL, "trainstack", STACK, AWS.program())
        stack.up()
        with KubernetesApi(administrator(home)) as api:
            add_nodes(api)
            yield LivedIn(rehearsal, api, stack)
    finally:
        rehearsal.stop()


def administrators(home: Path) -> Path:
    """The kubeconfig of administrators of the only cluster of a home."""
    (found,) = (home / FOLDER).glob("*/admin.kubeconfig")
    return found


def administrator(home: Path) -> Access:
    """The administrator's access to the control plane of a rehearsal home."""
    (credential,) = (home / FOLDER).glob(f"*/{CREDENTIAL}")
    status = json.loads(credential.read_text())["status"]
    cluster = json.loads(administrators(home).read_text())["clusters"][0]["cluster"]
    certificate, key = home.parent / "admin.crt", home.parent / "admin.key"
    certificate.write_text(status["clientCertificateData"])
    key.touch(mode=0o600)
    key.write_text(status["clientKeyData"])
    return Access(cluster["server"], Path(cluster["certificate-authority"]), certificate, key)


def add_nodes(api: KubernetesApi) -> None:
    """Create the nodes of KWOK that do not exist."""
    for name, (machine, nodes) in _MACHINES.items():
        with_gpus, labels = name != "cpu", {POOL_LABEL: name, **ON_KWOK}
        taints = [KWOK_TAINT, *([GPU_TAINT] if with_gpus else [])]
        for body in pool_nodes(KwokPool(f"kwok-{name}", machine, nodes, labels=labels, taints=taints)):
            whole = body["status"]["capacity"].items()
            amounts = {name: amount for name, amount in whole if with_gpus or name != GPU}
            if api.find("v1", "Node", body["metadata"]["name"]) is None:
                api.create({**body, "status": {"capacity": amounts, "allocatable": amounts}})


def end_pool(api: KubernetesApi, pool: str) -> None:
    """End a pool's nodes of KWOK, as the cloud ends those of a group: the pods on them are gone."""
    for node in api.list("v1", "Node", labels=f"{POOL_LABEL}={pool},{next(iter(ON_KWOK))}=yes"):
        name = node["metadata"]["name"]
        for pod in api.list("v1", "Pod", fields=f"spec.nodeName={name}"):
            about = pod["metadata"]
            url = api.resource("v1", "Pod").url(about["namespace"], about["name"])
            api.request("DELETE", url, {"gracePeriodSeconds": 0})
        api.delete("v1", "Node", name)
