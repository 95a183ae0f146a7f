"""Cloud Run services: the container's program as a local process, started by the first request.

Source: Cloud Run documentation, "Container runtime contract" (PORT, K_SERVICE, the metadata server), "About
instance autoscaling" (an instance without requests is kept for up to 15 minutes), "Configure container health
checks" (startup probe). Buckets are folders, with the rights of the service's account. A database of Cloud
SQL is a file of SQLite, as for pods: its login is fetched and renewed, but not checked. Services without the
proxy, without a startup probe, or whose command is not Python do not run.
"""

import http.client
import logging
import re
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.gcp.iam_bindings import may_somewhere
from rehearsal.dataplane.gcp.identity import account_caller, machine_identity
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.dataplane.gcp.storage import BUCKET
from rehearsal.gcp.rules.book import block
from rehearsal.jobs.gcp.cloud_run.front import Backend, Front
from rehearsal.jobs.gcp.cloud_run.iap import IapDeniedError, judge
from rehearsal.jobs.rows import row
from rehearsal.jobs.server_process import SOCKET, ServerProcess, ServerStartError
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.rewriting import LocalNames, rewrite
from rehearsal.workloads.translate import ProcessPlan, clean_start

TYPE = "gcp:cloudrunv2/service:Service"
_DATABASE = "gcp:sql/databaseInstance:DatabaseInstance"
_URL = re.compile(r"https://[a-z0-9-]+\.a\.run\.app")
_OBJECTS = ("storage.objects.get", "storage.objects.create", "storage.objects.list")
_PORT = 8080  # both of the front and, by default, of containers
_IDLE_S, _TICK_S = 900.0, 0.2
# Defaults of probes and requests (Cloud Run Admin API v2).
_PERIOD_S, _FAILURES, _TIMEOUT_S = 10, 3, 300.0
_LOG = logging.getLogger("rehearsal")


class CloudRun:
    """The services of a rehearsal that were requested; one ends when it is deleted, all with `stop`."""

    def __init__(self, state: State, plane: GooglePlane, addresses: Addresses) -> None:
        self._state, self._plane, self._addresses = state, plane, addresses
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def located(self, text: str) -> str:
        """Replace addresses of services in a text by their local URLs."""
        return _URL.sub(lambda found: self.url(found[0]) or found[0], text)

    def url(self, uri: str) -> str | None:
        """Local URL of the service with this address; None where none runs here."""
        record = next((one for one in self._state.find(type=TYPE) if one.outputs.get("uri") == uri), None)
        if record is None or not record.inputs.get("iapEnabled") or not _probe(record):
            return None
        with self._lock:
            if record.id not in self._open:
                self._open[record.id] = _Open(
                    record, self._state, self._plane, self._addresses, self._stopping
                )
                threading.Thread(target=self._watch, args=(record,), name=record.id, daemon=True).start()
            return self._open[record.id].front.url

    def live(self) -> list[dict[str, Any]]:
        """A row for each running instance, in the form of a pod's."""
        with self._lock:
            found = list(self._open.values())
        return [one.row(instance) for one in found if (instance := one.instance) and instance.running]

    def stop(self) -> None:
        """End every instance."""
        self._stopping.set()
        with self._lock:
            for one in self._open.values():
                one.close()
            self._open.clear()

    def _watch(self, record: Record) -> None:
        """End instances without requests, and close deleted services."""
        one = self._open[record.id]
        while not self._stopping.wait(_TICK_S):
            if _current(self._state, record) is None:
                with self._lock:
                    del self._open[record.id]
                one.close()
                folders.remove(one.folder)
                self._addresses.release(one.owner)
                return
            one.scale_in()


class _Open:
    """One service with an open address."""

    def __init__(
        self,
        record: Record,
        state: State,
        plane: GooglePlane,
        addresses: Addresses,
        stopping: threading.Event,
    ) -> None:
        self._record, self._state, self._plane, self._stopping = record, state, plane, stopping
        self._name = record.id.rpartition("/")[2]
        self.owner, self.folder = f"cloud-run|{record.id}", state.path.parent / "cloud-run" / self._name
        self.instance: ServerProcess | None = None
        self._starting, self._asked = threading.Lock(), time.monotonic()
        behind = Backend(self._judge, self._connect)
        self.front = Front(addresses.of(self.owner), _PORT, behind)

    def row(self, instance: ServerProcess) -> dict[str, Any]:
        """A row of `status` for the instance."""
        return row(
            "CloudRunService",
            str(self._record.outputs.get("location")),
            self._name,
            "Running",
            pod=self._name,
            ready=True,
            urls=[self.front.url],
            pids=instance.pids,
            log=str(instance.log),
        )

    def scale_in(self) -> None:
        """End an instance that had no requests for the idle time."""
        with self._starting:
            if self.instance is not None and time.monotonic() - self._asked > _IDLE_S:
                self._end()

    def close(self) -> None:
        """End the instance and close the address."""
        self.front.stop()
        with self._starting:
            self._end()

    def _end(self) -> None:
        if self.instance is not None:
            self.instance.end()
            self.instance = None

    def _judge(self, url: str, headers: Mapping[str, str]) -> None:
        judge(self._state, self._plane.identities.keys, self._record, url, headers)

    def _connect(self) -> http.client.HTTPConnection:
        """A connection to the instance, which is started if none runs. Raises IapDeniedError."""
        with self._starting:
            self._asked = time.monotonic()
            current = _current(self._state, self._record) or self._record
            changed = current.inputs["template"] != self._record.inputs["template"]
            self._record = current
            if changed or (self.instance is not None and not self.instance.running):
                self._end()  # another revision, or an instance that has exited
            if self.instance is None and not self._stopping.is_set():
                self._start()
            if self.instance is None:
                raise IapDeniedError(503, "Service Unavailable", {"Content-Type": "text/plain"})
            return self.instance.connection(_TIMEOUT_S)

    def _start(self) -> None:
        """Start an instance; the log has the reason of a failed startup probe."""
        probe = _probe(self._record)
        tries = int(probe.get("failureThreshold") or _FAILURES)
        patience_s = tries * float(probe.get("periodSeconds") or _PERIOD_S)
        instance = ServerProcess(self.folder, self._plan)
        try:
            instance.await_answer(str(block(probe, "httpGet").get("path") or "/"), patience_s, self._stopping)
        except ServerStartError as error:
            instance.end()
            _LOG.warning("%s: the container failed its startup probe: %s", self._record.id, error)
            return
        self.instance = instance

    def _plan(self, folder: Path) -> ProcessPlan:
        """The container's command, with names in its variables replaced by local ones."""
        template = block(self._record.inputs, "template")
        (container,) = template["containers"]
        email = str(template.get("serviceAccount"))
        world = _world(self._state, email, folder)
        command = [*(container.get("commands") or ()), *(container.get("args") or ())]
        envs = container.get("envs") or ()
        given = {str(one["name"]): rewrite(str(one.get("value") or ""), world) for one in envs}
        outputs = self._record.outputs
        identity = machine_identity(email, str(outputs["project"]), str(outputs.get("location")))
        host = self._plane.metadata_host(identity)
        added = {
            "PORT": str(_PORT),
            "K_SERVICE": self._name,
            "K_CONFIGURATION": self._name,
            "K_REVISION": str(self._record.outputs.get("latestReadyRevision")).rpartition("/")[2],
            "GCE_METADATA_HOST": host,
            "GCE_METADATA_IP": host,
            # The port would be open to every user of this machine, past the proxy: uvicorn takes its options
            # from variables, too (uvicorn/main.py, auto_envvar_prefix).
            "UVICORN_UDS": SOCKET,
        }
        argv = (sys.executable, *(rewrite(str(word), world) for word in command[1:]))
        start = clean_start(folder, self._name)
        return ProcessPlan(argv=argv, env={**start, **added, **given}, cwd=folder)


def _current(state: State, record: Record) -> Record | None:
    """The current record of a service; None once it is deleted."""
    return state.get(record.package, record.type, record.scope, record.id)


def _probe(record: Record) -> Mapping[str, Any]:
    """The startup probe of a service with one container of Python; empty where it is another one."""
    containers = block(record.inputs, "template").get("containers") or [{}]
    command = containers[0].get("commands") or [""]
    ours = len(containers) == 1 and re.fullmatch(r"(.*/)?python3?(\.\d+)?", str(command[0]))
    return block(containers[0], "startupProbe") if ours else {}


def _world(state: State, email: str, folder: Path) -> LocalNames:
    """The buckets and databases of the project, as the account of a service reaches them."""
    home, members = state.path.parent, account_caller(email).members
    buckets, databases = dict[str, Path](), dict[str, Path]()
    for bucket in state.find(type=BUCKET):
        kept = folders.bucket(home, bucket.id, "gs")
        kept.mkdir(parents=True, exist_ok=True)
        may = any(may_somewhere(state, members, right, bucket) for right in _OBJECTS)
        buckets[f"gs://{bucket.id}"] = kept if may else folders.denied(home, bucket.id, "gs")
    for database in state.find(type=_DATABASE):
        kept = folders.database(home, database.id)
        kept.mkdir(parents=True, exist_ok=True)
        databases[str(database.outputs.get("privateIpAddress"))] = kept
    return LocalNames("cloud-run", {"/tmp": folder / "tmp"}, {}, buckets, databases)  # noqa: S108 - in the container
