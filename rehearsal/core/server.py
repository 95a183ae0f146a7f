"""Server of the daemon: leases provider servers over the control socket and ends when idle."""

import importlib
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import grpc
import psutil
from pulumi.runtime.proto import provider_pb2_grpc

from infra.engine.peers import loopback_server
from rehearsal import control
from rehearsal.cluster_kind import real_cluster
from rehearsal.core import drift
from rehearsal.core.fault_injection import FaultInjector, FaultPlan
from rehearsal.core.journal import Journal, Journaled
from rehearsal.core.model import EmulatedCloud, RefusalError
from rehearsal.core.packages import ACCOUNTS, CLOUDS, PACKAGES
from rehearsal.core.provider import Provider
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.leases import Leases

_LOG = logging.getLogger("rehearsal")
# A Kubernetes create holds its thread until the object is ready, and the engine sets no limit of its own.
_THREADS = 256
# The services that programs of the user call, and the folder of the home with their runs.
_SERVICES, _RAN = "rehearsal.jobs.services:EmulatedServices", "jobs"


class _Supervisor(Protocol):
    """Part that runs workloads."""

    def live_workloads(self) -> list[Any]: ...

    def stop(self) -> None: ...


class _Restoring(_Supervisor, Protocol):
    """Cloud that runs workloads."""

    def restore(self) -> None: ...


class _Services(_Supervisor, Protocol):
    """Services that programs of the user call by HTTP."""

    def locate(self, name: str) -> str | None: ...


class _Holding(Protocol):
    """Cloud with a control plane for a provider that is not ours."""

    def hold(self) -> None: ...


class Server:
    """Owns the state, the clouds and the control socket of one rehearsal home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._state = State(home / "state.sqlite", daemon=True)
        self._journal = Journal(self._state)
        self._faults = FaultPlan(home / "faults.json")
        self._schemas: dict[str, Schemas] = {}
        self._clouds: dict[str, EmulatedCloud] = {}
        self._services: _Services | None = None
        self._building = threading.RLock()
        self._lock = threading.Lock()
        self._leases = Leases()
        self._providers: dict[Provider, int] = {}  # providers in use -> process of the engine
        self._real = real_cluster(home)
        self._file = self._state_file()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Serve until idle, stopped or without a home, then end the workloads."""
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())
        signal.signal(signal.SIGINT, lambda *_: self._stopping.set())
        with control.listen(self._home) as listener:
            if self._state.count("kubernetes"):
                self.cloud("kubernetes")  # restarts its workloads
            if (self._home / _RAN).exists():
                self.services()  # marks their runs as failed
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            while not self._stopping.wait(0.2):
                if self._leases.end_if_idle(lambda: bool(self._workloads())) or not self._at_home():
                    break
            self._leases.end()
            if self._at_home():
                control.socket_path(self._home).unlink(missing_ok=True)
            # A client accepted in the meantime sees the connection close and starts a new daemon.
        for supervisor in self._supervisors():
            supervisor.stop()
        for schemas in self._schemas.values():
            schemas.close()
        self._state.close()
        logging.shutdown()
        os._exit(0)  # servers and connections are daemon threads without further work

    def cloud(self, package: str) -> EmulatedCloud:
        """The emulated cloud of a package, built on first use."""
        with self._building:
            if package not in self._clouds:
                schemas = Schemas(package, _cache(self._home) / "schemas")
                self._schemas[package] = schemas
                self._clouds[package] = _named(self._class(package))(self._state, schemas, self._home)
                if hasattr(self._clouds[package], "restore"):
                    cast(_Restoring, self._clouds[package]).restore()
            return self._clouds[package]

    def services(self) -> _Services:
        """The services that programs of the user call by HTTP, opened on first use."""
        with self._building:
            if self._services is None:
                self._services = cast(_Services, _named(_SERVICES)(self._state, self._home, self._faults))
            return self._services

    def _class(self, package: str) -> str:
        """Class of the cloud of a package in this home."""
        facts = PACKAGES[package]
        return facts.real_cloud if self._real and facts.real_cloud else facts.cloud

    def _supervisors(self) -> list[_Supervisor]:
        with self._building:
            clouds = list(self._clouds.values())
            services = [self._services] if self._services else []
        running = [cast(_Supervisor, cloud) for cloud in clouds if hasattr(cloud, "live_workloads")]
        return [*running, *services]

    def _workloads(self) -> list[Any]:
        return [workload for supervisor in self._supervisors() for workload in supervisor.live_workloads()]

    def _at_home(self) -> bool:
        """Return whether the home is still this daemon's; without it, daemon and workloads end."""
        return self._state_file() == self._file

    def _state_file(self) -> tuple[int, int] | None:
        try:
            found = (self._home / "state.sqlite").stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    # -- connections -----------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if control.peer_uid(connection) != os.geteuid():
                connection.close()
                continue
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, sock: socket.socket) -> None:
        held: list[tuple[grpc.Server, Provider]] = []
        lease = id(sock)
        try:
            with sock, sock.makefile("rw", encoding="utf-8") as file:
                for line in file:
                    with self._leases.answering() as in_time:
                        if not in_time:
                            break
                        file.write(json.dumps(self._answer(json.loads(line), held, lease)) + "\n")
                        file.flush()
        except (OSError, ValueError) as error:
            _LOG.debug("a connection ended: %s", error)
        finally:
            self._leases.take_back(lease)
            for server, provider in held:
                provider.end()
                server.stop(None)
                provider.wait_until_quiet()
                with self._lock:
                    self._providers.pop(provider)

    def _answer(
        self, message: dict[str, Any], held: list[tuple[grpc.Server, Provider]], lease: int
    ) -> dict[str, Any]:
        try:
            if message["op"] == "serve":
                engine = int(message.get("engine", 0))
                self._leases.give(lease, engine)
                server, provider, port = self._serve(message, engine)
                held.append((server, provider))
                return {"port": port}
            if message["op"] in ("hold", "serving"):
                self._leases.give(lease, int(message["engine"]))
                if message["op"] == "hold":
                    cast(_Holding, self.cloud("kubernetes")).hold()
                else:
                    self.services()
                return {}
            if message["op"] in _OPERATIONS:
                return _OPERATIONS[message["op"]](self, message)
        except RefusalError as refusal:
            return {"error": str(refusal)}
        except Exception as error:
            _LOG.exception("%s", message.get("op"))
            return {"error": f"{type(error).__name__}: {error}"}
        return {"error": f"unknown operation {message['op']!r}"}

    def _drift(self, message: dict[str, Any]) -> dict[str, Any]:
        record = drift.find(self._state, message["urn"])
        cloud = self.cloud(record.package)
        if message["op"] == "drift":
            drift.change(self._state, self._schemas[record.package], record, message["values"])
        else:
            drift.delete(cloud, record, lambda severity, text: _LOG.info("%s", text))
        return {"urn": record.urn, "id": record.id, "type": record.type}

    def _seed(self, message: dict[str, Any]) -> dict[str, Any]:
        new: list[str] = []
        for name, package in ACCOUNTS.items():
            rows = [one for one in message["resources"] if one["type"].startswith(f"{name}:")]
            if rows:
                new += importlib.import_module(package.existing).seed(self._state, rows)
        return {"new": new}

    def _locate(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"url": self.services().locate(message["name"])}

    def _stop(self, message: dict[str, Any]) -> dict[str, Any]:
        self._stopping.set()
        return {}

    def _recover(self, message: dict[str, Any]) -> dict[str, Any]:
        """Cancel requests of killed engines and delete what their creates left behind; returns its ids."""
        with self._lock:
            gone = [provider for provider, engine in self._providers.items() if _is_gone(engine)]
        for provider in gone:  # their plugins end only later, and a commit until then would be lost
            provider.end()
            provider.wait_until_quiet()
        taken_back = []
        for urn in message["urns"]:
            with self._journal.alone(urn):
                found = self._state.unconfirmed(urn)
                if found is not None:
                    left = self._journal.take_back(self.cloud(found[0].package), urn)
                    taken_back += [left] if left else []
        return {"taken_back": taken_back}

    def _serve(self, message: dict[str, Any], engine: int) -> tuple[grpc.Server, Provider, int]:
        package = str(message["package"])
        if package not in PACKAGES:
            raise ValueError(f"{package} is not emulated; emulated are {', '.join(PACKAGES)}")
        cloud, facts = self.cloud(package), PACKAGES[package]
        if facts.limits:
            self.services()  # dynamic providers of the same program may call them
        if self._real and facts.real_clusters:
            cloud = _named(facts.real_clusters)(cloud, self._state, self._home)
        if package in CLOUDS:
            cloud = Journaled(cloud, self._journal)
            if facts.limits:
                cloud = _named(facts.limits)(cloud, self._state, self._home / "faults.json")
            cloud = FaultInjector(cloud, self._faults, engine)
        log = str(self._home / control.LOG)
        provider = Provider(cloud, message.get("environment", {}), log, message.get("folder", ""))
        with self._lock:
            self._providers[provider] = engine
        server, port = loopback_server(_THREADS, package)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
        server.start()
        return server, provider, port

    def _status(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "resources": {package: self._state.count(package) for package in CLOUDS},
            "workloads": self._workloads(),
            "engines": self._leases.engines(),
        }


def _named(path: str) -> Callable[..., EmulatedCloud]:
    """The class at `module:name`, imported on first use: the daemon starts without the clouds."""
    module, _, name = path.partition(":")
    found: Callable[..., EmulatedCloud] = getattr(importlib.import_module(module), name)
    return found


def _is_gone(process: int) -> bool:
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _cache(home: Path) -> Path:
    """The cache of the checkout for all its rehearsals; another home has one beside it where possible."""
    checkout = next((folder for folder in home.parents if folder.name == ".trainstack"), home.parent)
    beside = checkout / "cache"
    return beside if not beside.exists() or beside.stat().st_uid == os.geteuid() else home / "cache"


_OPERATIONS: dict[str, Callable[[Server, dict[str, Any]], dict[str, Any]]] = {
    "recover": Server._recover,
    "drift": Server._drift,
    "delete": Server._drift,
    "locate": Server._locate,
    "seed": Server._seed,
    "status": Server._status,
    "stop": Server._stop,
}
