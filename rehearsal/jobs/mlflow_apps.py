"""MLflow Apps: for each one a real MLflow server of this machine, started when something first asks for it.

The service finds an app by its ARN, with signed requests; here the server answers processes of this user at
an address of its own, through a proxy that asks the kernel who is there. It writes artifacts itself, so what
it may do in the bucket is not checked. Source: SageMaker Developer Guide, "MLflow Apps" (the ARN is the
tracking URI).
"""

import http.client
import os
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.s3.objects import uri
from rehearsal.jobs.rows import row
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.proxy import Proxy
from rehearsal.workloads.translate import Plan

TYPE = "aws:sagemaker/mlflowApp:MlflowApp"
_ARN = re.compile(r"arn:aws:sagemaker:[a-z0-9-]+:\d{12}:mlflow-app/[A-Za-z0-9-]+")
_PORT = 5000
_SOCKET = "mlflow.sock"
_PATIENCE_S, _TICK_S, _GRACE_S = 120.0, 0.2, 5.0


class MlflowError(Exception):
    """The server of an app did not start: the end of its log."""


@dataclass(frozen=True)
class _Running:
    process: ContainerProcess
    address: str
    folder: Path
    descriptor: int  # of the folder: the path of a socket may have 107 bytes only

    @property
    def url(self) -> str:
        return f"http://{self.address}:{_PORT}"

    @property
    def socket(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self.descriptor}/{_SOCKET}"


class MlflowApps:
    """The servers of a rehearsal's apps; each ends when its app is deleted, and all with `stop`."""

    def __init__(self, state: State) -> None:
        self._state, self._home, self._addresses = state, state.path.parent, Addresses(state)
        self._running: dict[str, _Running] = {}
        self._starting = threading.Lock()
        self._proxy: Proxy | None = None
        self._stopping = threading.Event()

    def located(self, text: str) -> str:
        """Text with the ARNs of apps replaced by where their servers answer; starts these."""
        return _ARN.sub(lambda found: self.url(found[0]) or found[0], text)

    def url(self, arn: str) -> str | None:
        """Where the server of an app answers, once it does; None when there is no such app.

        Raises MlflowError when it does not start.
        """
        record = self._record(arn)
        if record is None:
            return None
        with self._starting:
            running = self._running.get(arn)
            if running is None or running.process.exit_code() is not None:
                running = self._start(record)
        return running.url

    def live(self) -> list[dict[str, Any]]:
        """A row for each server, of the form of a pod's."""
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
                pids=[running.process.supervisor_pid, *running.process.pids()],
                log=str(running.folder / "log"),
            )
            for arn, running in list(self._running.items())
            if running.process.exit_code() is None
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
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        (folder / _SOCKET).unlink(missing_ok=True)
        bucket, prefix = uri(str(record.inputs.get("artifactStoreUri")))
        artifacts = folders.bucket(self._home, bucket) / prefix
        address = self._addresses.of(f"mlflow-app|{arn}")
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        process = ContainerProcess(_plan(folder, artifacts, address), folder / "log", (), _GRACE_S)
        running = _Running(process, address, folder, descriptor)
        self._running[arn] = running
        try:
            self._await(running)
        except MlflowError:
            self._end(arn)
            raise
        self._proxy = self._proxy or Proxy()
        self._proxy.open(address, {_PORT: lambda: running.socket})
        threading.Thread(target=self._watch, args=(arn,), name=f"mlflow {arn}", daemon=True).start()
        return running

    def _await(self, running: _Running) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + _PATIENCE_S
        while not _answers(running.socket):
            if running.process.wait(_TICK_S) is not None or time.monotonic() > deadline:
                words = (running.folder / "log").read_text(errors="replace").splitlines()[-20:]
                raise MlflowError("the MLflow server did not start:\n" + "\n".join(words))
            if self._stopping.is_set():
                raise MlflowError("the rehearsal's daemon ends")

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
        running.process.kill()
        os.close(running.descriptor)


class _Connection(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _answers(path: str) -> bool:
    connection = _Connection(path)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _plan(folder: Path, artifacts: Path, address: str) -> Plan:
    """The command of a server with one worker; its socket lies in its folder, which only this user enters."""
    argv = (
        *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", artifacts.as_uri(), "--serve-artifacts"),
        *("--allowed-hosts", f"localhost,{address}:{_PORT}"),  # no page of a browser by another name
        *("--uvicorn-opts", f"--uds {_SOCKET} --log-level warning"),
    )
    env = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return Plan(argv=argv, env=env, cwd=folder)
