"""The GPU ledger's program beside a real control plane: start, kill, restart."""

import json
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.gpu_ledger import book_text
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.check import CHECK, CONTROLLER, active
from agents.gpu_ledger.ledger import TeamBook
from components.kubernetes.accounting.gpu_ledger import NAMESPACE, PROGRAM, GpuLedger
from components.kubernetes.queueing.kueue import API_VERSION
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.processes import free_ports
from tests.cluster.programs import started
from tests.cluster.waiting import eventually, gone
from tests.components.graph import Graph, deploy_graph

IMAGE = "example.com/python@sha256:" + "0" * 64
_KINDS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")


def check_is_active(api: KubernetesApi) -> None:
    """The AdmissionCheck must exist before its queues: they admit no job until its controller responds."""
    api.apply({"apiVersion": API_VERSION, "kind": "AdmissionCheck", "metadata": {"name": CHECK},
               "spec": {"controllerName": CONTROLLER}})  # fmt: skip
    api.patch(API_VERSION, "AdmissionCheck", CHECK, dict(active(0)), subresource="status")


@dataclass
class Standing:
    """The ledger's program, with the rights that its component gives it."""

    api: KubernetesApi
    folder: Path
    namespaces: Sequence[str]
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    prometheus: str | None = None
    process: "subprocess.Popen[str] | None" = None
    port: int = 0
    said: str = ""

    def start(self, **budget: Any) -> None:
        """Run it; `budget`: of every namespace, usd, gpu_hours, stop, exempt."""
        given = {"usd": None, "gpu_hours": None, "stop": False, "exempt": [], **budget}
        config = {
            "teams": {name: name for name in self.namespaces},
            "budgets": dict.fromkeys(self.namespaces, given) if budget else {},
            "prices": self.prices,
            "prometheus": self.prometheus,
        }
        (self.port,) = free_ports(1)
        folder = self.folder / uuid.uuid4().hex[:6]
        folder.mkdir()
        words = {"config": json.dumps(config), "port": self.port}
        token = self.api.token(NAMESPACE, NAME)
        self.process = started(PROGRAM, words, self.api.access, token, folder)

    def kill(self) -> None:
        """Kill it, as the loss of its node does."""
        if self.process:
            self.process.kill()
            self.said += "".join(self.process.communicate())
            self.process = None

    def again(self, **budget: Any) -> None:
        """Start another one in its place."""
        self.kill()
        self.start(**budget)

    def final_output(self) -> str:
        """End it and return its output, for the message of a failed test."""
        self.kill()
        return self.said

    def metrics(self) -> str:
        """Its metrics as Prometheus reads them; empty while it does not answer, and before its first pass."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                return str(answer.read().decode()).strip()
        except OSError:
            return ""

    def book(self, namespace: str) -> TeamBook | None:
        """A team's book in its ConfigMap."""
        found = self.api.find("v1", "ConfigMap", NAME, namespace)
        return book_text.parse(text_of(found)) if found else None


def component(namespaces: Sequence[str]) -> Graph:
    """The component in a stack with these teams."""
    teams: Any = [{"name": name, "namespace": name} for name in namespaces]
    return deploy_graph(
        lambda: {"at": GpuLedger("ledger", {"teams": teams, "prices": {}, "image": IMAGE}).namespace}
    )


@contextmanager
def ledger(
    api: KubernetesApi,
    folder: Path,
    namespaces: Sequence[str],
    prices: Mapping[str, Mapping[str, float]] | None = None,
) -> Iterator[Standing]:
    """The program's account and rights; it is not started yet."""
    bodies: list[Object] = []
    for kind in _KINDS:
        bodies += [
            {"apiVersion": asked.type.split(":")[1].removeprefix("core/"), "kind": kind, **asked.properties}
            for asked in component(namespaces).cloud.asked
            if asked.type.rpartition(":")[2] == kind
        ]
    for body in bodies:
        api.apply(body)
    standing = Standing(api, folder, namespaces, prices or {})
    try:
        yield standing
    finally:
        standing.kill()
        for body in bodies:
            metadata = body["metadata"]
            api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
        gone(api, [body for body in bodies if body["kind"] == "Namespace"])


def booked(standing: Standing, namespace: str, what: Any) -> TeamBook:
    """The book once `what` holds of it."""
    return eventually(  # type: ignore[no-any-return]
        lambda: (book := standing.book(namespace)) and what(book) and book, standing.final_output
    )
