"""The Job that installs a chart's definitions, as a component creates it, run beside a real API server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import pulumi

from components.kubernetes.charts import charts
from components.kubernetes.definitions.install import NAME, definitions, program
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.manifests import manifests
from tests.cluster.programs import finished, started
from tests.cluster.queues.lab import IMAGE
from tests.cluster.waiting import gone
from tests.components.graph import deploy_graph

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


@dataclass
class Installer:
    """The program of one chart's Job, with the account and the rights that it has in a stack."""

    api: KubernetesApi
    chart: str
    given: Mapping[str, str]
    folder: Path

    def start(self, **changes: object) -> "Popen[str]":
        """Start the program with some other arguments; `finish` waits for it."""
        token = self.api.token(charts()[self.chart].namespace, NAME)
        given = {**self.given, "seconds": 60, "message": self.folder / "message", **changes}
        return started(program(self.chart), given, self.api.access, token, self.folder)

    def finish(self, process: "Popen[str]") -> tuple[int, str]:
        """The exit code and the message."""
        return finished(process, self.folder, 120)

    def run(self, **changes: object) -> tuple[int, str]:
        """Start the program, and wait for it."""
        return self.finish(self.start(**changes))


@contextmanager
def installer(api: KubernetesApi, chart: str, folder: Path) -> Iterator[Installer]:
    """The program of a chart's Job; its namespace exists already."""

    def child(opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
        return opts or pulumi.ResourceOptions()

    def composed() -> Mapping[str, Any]:
        return {"job": definitions("d", chart, IMAGE, child(), child).id}

    graph = deploy_graph(composed)
    rights = [body for body in manifests(graph) if body["kind"] in RIGHTS]
    (container,) = graph.find("Job")["spec"]["template"]["spec"]["containers"]
    words = [word.removeprefix("--") for word in container["args"]]
    given = dict(zip(words[::2], words[1::2], strict=True))
    for body in rights:
        api.apply(body)
    try:
        yield Installer(api, chart, given, folder)
    finally:
        for body in rights:
            metadata = body["metadata"]
            api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
        gone(api, rights)
