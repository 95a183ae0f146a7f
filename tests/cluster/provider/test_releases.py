"""Failed and pending Helm releases with the real provider: state, and the next `up`.

The chart is a Deployment for nodes of a pool; its pods never run, so it is ready with no replicas only.
"""

import subprocess
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

from rehearsal.controlplane.binaries import FOLDER
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.provider.real import needs_provider, stacks
from tests.cluster.waiting import eventually
from tests.rehearsal.runs.updates import counts, refused

TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, color: {{ .Values.color }}}}
    spec:
      nodeSelector: {pool: missing}
      containers: [{name: main, image: python:3.11}]
"""
# The provider's message; a part depends on the verb.
NOT_LIVE = (
    'Helm release "{}/r" {}failed to initialize completely. Use Helm CLI to investigate: failed to become'
)
BUSY = "another operation (install/upgrade/rollback) is in progress"
pytestmark = needs_provider


class Releases:
    """One release of the chart in one namespace, by the provider and by Helm itself."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.namespace, self._plane, self._chart = namespace, plane, folder / "chart"
        (self._chart / "templates").mkdir(parents=True)
        (self._chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
        (self._chart / "values.yaml").write_text("{replicas: 1, color: red}\n")
        (self._chart / "templates" / "web.yaml").write_text(TEMPLATE)
        self._select = stacks(folder / "state")
        self.values: dict[str, Any] = {}
        self.atomic = False

    def _program(self) -> None:
        opts = pulumi.ResourceOptions(
            provider=k8s.Provider("cluster", kubeconfig=self._plane.kubeconfig.read_text())
        )
        k8s.helm.v3.Release(
            "r", name="r", namespace=self.namespace, chart=str(self._chart), values=self.values,
            timeout=3, atomic=self.atomic, opts=opts,
        )  # fmt: skip

    @property
    def stack(self) -> automation.Stack:
        return self._select(self._program)

    def refused(self) -> str:
        return refused(self.stack)

    def up(self) -> dict[str, int]:
        return counts(self.stack.up(on_output=lambda _: None).summary.resource_changes)

    def kept(self) -> tuple[tuple[str, int] | None, list[str]]:
        """Status and revision, and the errors, that the engine keeps."""
        rows: Any = (self.stack.export_stack().deployment or {})["resources"]
        found = [row for row in rows if row["urn"].endswith("::r")]
        if not found:
            return None, []
        status = found[0]["outputs"]["status"]
        return (status["status"], int(status["revision"])), found[0].get("initErrors", [])

    def helm(self, *words: str) -> "subprocess.Popen[str]":
        """Start Helm."""
        where = ["--namespace", self.namespace, "--kubeconfig", str(self._plane.kubeconfig)]
        return subprocess.Popen([str(FOLDER / "helm"), *words, *where], text=True, stdout=subprocess.DEVNULL)

    def killed(self, verb: str, revision: int) -> None:
        """What an `up` leaves that is killed while it waits for a release."""
        helm = self.helm(verb, "r", str(self._chart), "--set", "color=green", "--wait", "--timeout", "60s")
        with self._plane.api() as api:
            name = f"sh.helm.release.v1.r.v{revision}"
            eventually(lambda: api.find("v1", "Secret", name, self.namespace))
        helm.kill()
        helm.wait()


@pytest.fixture
def releases(plane: ControlPlane, namespace: str, tmp_path: Path) -> Releases:
    return Releases(plane, namespace, tmp_path)


def test_a_failed_release_is_upgraded_and_a_refresh_forgets_that_it_failed(releases: Releases) -> None:
    assert NOT_LIVE.format(releases.namespace, "was created, but ") in releases.refused()
    status, (error,) = releases.kept()
    assert status == ("failed", 1)
    assert error.endswith(f"Error: Helm Release {releases.namespace}/r: context deadline exceeded")
    assert NOT_LIVE.format(releases.namespace, "") in releases.refused()
    assert releases.kept()[0] == ("failed", 2)
    releases.stack.refresh(on_output=lambda _: None)
    assert releases.kept() == (("failed", 2), [])
    assert releases.up() == {"same": 3}
    releases.values = {"replicas": 0}
    assert releases.up() == {"same": 2, "update": 1}
    assert releases.kept() == (("deployed", 3), [])
    # An upgrade that is killed stays in the way of every other one, until it is rolled back.
    releases.killed("upgrade", 4)
    releases.values = {"replicas": 0, "color": "blue"}
    assert BUSY in releases.refused()
    releases.stack.refresh(on_output=lambda _: None)
    assert releases.kept() == (("pending-upgrade", 4), [])
    assert BUSY in releases.refused()
    assert releases.helm("rollback", "r", "3").wait() == 0
    assert releases.up() == {"same": 2, "update": 1}
    assert releases.kept() == (("deployed", 6), [])
    # One that is gone cannot be deleted, until a refresh finds that.
    assert releases.helm("uninstall", "r").wait() == 0
    with pytest.raises(automation.CommandError, match="uninstall: Release not loaded: r: release: not found"):
        releases.stack.destroy(on_output=lambda _: None)
    releases.stack.refresh(on_output=lambda _: None)
    releases.stack.destroy(on_output=lambda _: None)


def test_an_atomic_release_leaves_nothing_or_what_was_before(releases: Releases) -> None:
    # A killed install has the name, and is no resource of the engine: Helm has to remove it.
    releases.killed("install", 1)
    releases.atomic = True
    assert "cannot re-use a name that is still in use" in releases.refused()
    assert releases.kept() == (None, [])
    assert releases.helm("uninstall", "r").wait() == 0
    said = releases.refused()
    assert "release r failed, and has been uninstalled due to atomic being set: context deadline" in said
    assert releases.kept() == (None, [])
    releases.values = {"replicas": 0}
    assert releases.up()["create"] == 1
    releases.values = {"replicas": 1}
    said = releases.refused()
    assert NOT_LIVE.format(releases.namespace, "") in said
    assert "release r failed, and has been rolled back due to atomic being set: context deadline" in said
    assert releases.kept()[0] == ("failed", 2)
    releases.stack.refresh(on_output=lambda _: None)
    assert releases.kept() == (("deployed", 3), [])
    releases.stack.destroy(on_output=lambda _: None)
