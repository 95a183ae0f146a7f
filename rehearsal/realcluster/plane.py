"""The real control plane of a cluster and its nodes, started on first use."""

import contextlib
import json
import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.controlplane.addons import ADDONS
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.processes import StartError
from rehearsal.core.model import RefusalError
from rehearsal.core.state import State
from rehearsal.kubernetes.charts import find
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from rehearsal.kubernetes.kinds import HELM_RELEASE
from rehearsal.realcluster.agent import Agent
from rehearsal.realcluster.real_provider import CREDENTIAL
from rehearsal.workloads.translate import Pod

_LOG = logging.getLogger("rehearsal")
# Nodes of a rehearsal are never lost; they send no heartbeats.
_NODE_GRACE_S = 30 * 24 * 3600


@dataclass(frozen=True)
class PlaneSite:
    """Scope, files and logins of the control plane of one cluster."""

    scope: str
    """Scope of the cluster's objects in the state."""
    folder: Path
    """Its files."""
    logins: str
    """URL of the service that knows tokens of the cluster's cloud; empty without a cloud."""


class Plane:
    """Thread-safe. Its objects outlive this process; its processes do not.

    When it exits it is restarted at the same address, as the API server of a managed cluster is, and the pods
    on its nodes continue to run.
    """

    def __init__(self, state: State, home: Path, identities: PodIdentities, place: PlaneSite) -> None:
        self._state, self._home, self._identities = state, home, identities
        self._place, self.folder = place, place.folder
        self._lock = threading.RLock()
        self._processes, self._open = contextlib.ExitStack(), contextlib.ExitStack()
        self._running: ControlPlane | None = None
        self._api: KubernetesApi | None = None
        self._agent: Agent | None = None

    @property
    def known(self) -> bool:
        """Return whether it was ever started: objects may exist."""
        return self.folder.exists()

    @property
    def runs(self) -> bool:
        """Return whether it responds now."""
        return self._running is not None and self._running.process.poll() is None

    def api(self) -> KubernetesApi:
        """Administrator connection; starts the control plane. Raises RefusalError when that fails."""
        with self._lock:
            if not self.runs:
                self._run()
            if self._api is None:
                self._connect()
            assert self._api is not None
            return self._api

    def install(self, addon: str, values: Mapping[str, Any], *, skip_crds: bool = False) -> None:
        """Install a chart whose controller runs here. Raises RefusalError."""
        self._ask(lambda plane: plane.install(addon, values, skip_crds=skip_crds))

    def remove(self, addon: str) -> None:
        """Undo `install`. Raises RefusalError."""
        self._ask(lambda plane: plane.remove(addon))

    def pods(self) -> list[dict[str, Any]]:
        """Every pod on its nodes, as a row of `status`."""
        agent = self._agent
        return agent.describe() if agent else []

    def describe(self) -> dict[str, Any]:
        """The control plane as a row of `status`."""
        running = self._running
        return {
            **dict.fromkeys(("namespace", "reason", "message"), ""),
            "kind": "ControlPlane",
            "name": self.folder.name,
            "pod": self.folder.name,
            "phase": "Running",
            "ready": self.runs,
            "run": True,
            "urls": [],
            "notes": [],
            "restarts": 0,
            "pids": [running.process.pid] if running else [],
            "log": str(self.folder / "kube-apiserver.log"),
        }

    def stop(self) -> None:
        """End its processes; its objects are kept."""
        with self._lock:
            self._running = self._api = self._agent = None
            self._open.close()
            self._processes.close()

    def discard(self) -> None:
        """End it and delete its objects."""
        with self._lock:
            self.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, order: Callable[[ControlPlane], None]) -> None:
        self.api()
        assert self._running is not None
        try:
            order(self._running)
        except StartError as error:
            raise RefusalError("InstallFailed", str(error)) from error

    def _run(self) -> None:
        self._processes.close()
        addons = {name: dict(values) for name, values in self._installed()}
        order = ControlPlaneOptions(
            self.folder,
            node_grace_s=_NODE_GRACE_S,
            keep=True,
            addons=addons,
            logins=self._place.logins,
        )
        try:
            self._running = made = self._processes.enter_context(running(order))
        except StartError as error:
            raise RefusalError(
                "ControlPlaneUnavailable",
                f"the real control plane did not start: {error}",
                "`make binaries` builds its programs; `--cluster emulated` needs none, in another home.",
            ) from error
        threading.Thread(target=self._keep, args=(made,), name="control plane", daemon=True).start()

    def _keep(self, made: ControlPlane) -> None:
        """Restart it when it exits."""
        made.process.wait()
        with self._lock:
            if self._running is not made:
                return
            _LOG.warning("the control plane exited; its logs are in %s", self.folder)
            with contextlib.suppress(RefusalError):  # raised for the next caller
                self._run()

    def _connect(self) -> None:
        assert self._running is not None
        self._api = self._open.enter_context(self._running.api())
        self._write_login()
        host, _, port = self._api.access.server.removeprefix("https://").partition(":")
        server = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

        def identity(cluster: KubeCluster, pod: Pod, folder: Path) -> Mapping[str, str]:
            return {**self._identities.environment(cluster, pod, folder), **server}

        self._agent = Agent(self._state, self._home, self._api, identity, self._place.scope)
        self._open.callback(self._agent.stop)
        self._agent.start()

    def _write_login(self) -> None:
        """Write the administrator's certificate in the form of a kubeconfig's login command."""
        assert self._running is not None
        access = self._running.access
        assert access.certificate and access.key
        status = {
            "clientCertificateData": access.certificate.read_text(encoding="utf-8"),
            "clientKeyData": access.key.read_text(encoding="utf-8"),
        }
        login = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}
        file = self.folder / CREDENTIAL
        file.touch(mode=0o600)
        file.write_text(json.dumps({**login, "status": status}), encoding="utf-8")

    def _installed(self) -> list[tuple[str, Mapping[str, Any]]]:
        found = []
        for record in self._state.find(type=HELM_RELEASE, scope=self._place.scope):
            chart = find(str(record.inputs.get("chart") or ""))
            if chart and chart.name in ADDONS:
                found.append((chart.name, record.inputs.get("values") or {}))
        return found
