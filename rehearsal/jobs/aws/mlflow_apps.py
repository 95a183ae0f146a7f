"""MLflow Apps: a local MLflow server for each app, started on first use.

The service identifies an app by its ARN, with signed requests (`mlflow_gateway`). For browsers the server
also listens at an address of its own, behind a proxy that checks the caller's user with the kernel. Artifacts
are in the app's bucket: clients write them with their own rights, the server reads them as its role. Source:
SageMaker Developer Guide, "MLflow Apps" (the ARN is the tracking URI).
"""

import http.client
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.aws.identity import TOKEN_VARIABLE, Identities
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH
from rehearsal.jobs.rows import row
from rehearsal.jobs.server_process import SOCKET, ServerProcess, ServerStartError
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.proxy import Proxy
from rehearsal.workloads.translate import ProcessPlan, clean_start

TYPE = "aws:sagemaker/mlflowApp:MlflowApp"
_ARN = re.compile(r"arn:aws:sagemaker:[a-z0-9-]+:\d{12}:mlflow-app/[A-Za-z0-9-]+")
SERVICE = "sagemaker.amazonaws.com"
_PORT = 5000
_PATIENCE_S, _TICK_S = 400.0, 0.2


@dataclass(frozen=True)
class _Running:
    instance: ServerProcess
    address: str
    folder: Path

    @property
    def url(self) -> str:
        return f"http://{self.address}:{_PORT}"


class MlflowApps:
    """The servers of a rehearsal's apps; a server ends when its app is deleted, all with `stop`."""

    def __init__(self, state: State) -> None:
        self._identities, self._url = Identities(state), ""
        self._state, self._home, self._addresses = state, state.path.parent, Addresses(state)
        self._running: dict[str, _Running] = {}
        self._starting = threading.Lock()
        self._proxy: Proxy | None = None
        self._stopping = threading.Event()

    def open(self, identities: Identities, url: str) -> None:
        """Let servers read their buckets at `url`, as roles known to `identities`."""
        self._identities, self._url = identities, url

    def start_named(self, text: str) -> None:
        """Start the servers of the apps whose ARNs are in a text."""
        for arn in _ARN.findall(text):
            self.url(arn)

    def connection(self, arn: str, timeout_s: float) -> http.client.HTTPConnection | None:
        """An HTTP connection to an app's server; None without such an app. Raises ServerStartError."""
        self.url(arn)
        with self._starting:
            running = self._running.get(arn)
            return running.instance.connection(timeout_s) if running else None

    def url(self, arn: str) -> str | None:
        """The URL of an app's server once it responds; None without such an app.

        Raises ServerStartError when it does not start.
        """
        record = self._record(arn)
        if record is None:
            return None
        with self._starting:
            running = self._running.get(arn)
            if running is not None and not running.instance.running:
                self._end(arn)
                running = None
            running = running or self._start(record)
        return running.url

    def live(self) -> list[dict[str, Any]]:
        """A row for each server, in the form of a pod's."""
        return [
            row(
                "MlflowApp",
                arn.split(":")[3],
                arn,
                "Running",
                pod=arn.rpartition("/")[2],
                ready=True,
                address=running.address,
                ports=[_PORT],
                urls=[running.url],
                pids=running.instance.pids,
                log=str(running.instance.log),
            )
            for arn, running in list(self._running.items())
            if running.instance.running
        ]

    def stop(self) -> None:
        """End every server."""
        self._stopping.set()
        with self._starting:
            for arn in list(self._running):
                self._end(arn)
            if self._proxy is not None:
                self._proxy.stop()

    def _record(self, arn: str) -> Record | None:
        return next((record for record in self._state.issued(arn) if record.type == TYPE), None)

    def _start(self, record: Record) -> _Running:
        arn = str(record.outputs["arn"])
        folder = folders.runs(self._home, arn)
        address = self._addresses.of(f"mlflow-app|{arn}")
        artifacts = str(record.inputs.get("artifactStoreUri"))
        instance = ServerProcess(
            folder, lambda place: _plan(place, artifacts, address, self._reads(record, place))
        )
        running = _Running(instance, address, folder)
        self._running[arn] = running
        try:
            instance.await_answer("/health", _PATIENCE_S, self._stopping)
        except ServerStartError:
            self._end(arn)
            raise
        self._proxy = self._proxy or Proxy()
        self._proxy.open(address, {_PORT: lambda: instance.socket})
        threading.Thread(target=self._watch, args=(arn,), name=f"mlflow {arn}", daemon=True).start()
        return running

    def _reads(self, record: Record, folder: Path) -> dict[str, str]:
        """Variables with which a server reads the app's bucket as the app's role."""
        role, region = str(record.inputs.get("roleArn")), str(record.outputs["arn"]).split(":")[3]
        token = self._identities.role_token(role, "SageMaker", SERVICE, folder)
        return {
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_ENDPOINT_URL": self._url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": self._url + CREDENTIALS_PATH,
            TOKEN_VARIABLE: str(token),
        }

    def _watch(self, arn: str) -> None:
        """End the server when its app is deleted."""
        while not self._stopping.wait(_TICK_S):
            if self._record(arn) is None:
                with self._starting:
                    if arn in self._running:
                        folder = self._running[arn].folder
                        self._end(arn)
                        folders.remove(folder)
                        self._addresses.release(f"mlflow-app|{arn}")
                return

    def _end(self, arn: str) -> None:
        running = self._running.pop(arn)
        if self._proxy is not None:
            self._proxy.open(running.address, {})
        running.instance.end()


def _plan(folder: Path, artifacts: str, address: str, reads: Mapping[str, str]) -> ProcessPlan:
    """Command of a server with one worker; its socket is in a folder that only this user can open."""
    argv = (
        *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--default-artifact-root", artifacts, "--no-serve-artifacts"),
        *("--allowed-hosts", f"localhost,{address}:{_PORT}"),  # refuse browser pages of other hosts
        *("--uvicorn-opts", f"--uds {SOCKET} --log-level warning"),
    )
    env = {
        **clean_start(folder, "mlflow"),
        **reads,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return ProcessPlan(argv=argv, env=env, cwd=folder)
