"""Clusters of managed services of a rehearsal: a real Slurm of this machine for each."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from infra.engine.golang import SetupError
from infra.slurm import tracking
from rehearsal.dataplane import folders
from rehearsal.slurm.cluster import LocalSlurm, free_ports
from rehearsal.slurm.cluster import environment as cluster_environment
from rehearsal.slurm.local_files import LocalNode

_PORT: Final = "29500"
"""The port of rendezvous of a rendered script; all nodes share the network of this machine."""


class SlurmDescription(Protocol):
    """A Slurm system as its service describes it."""

    @property
    def groups(self) -> object:
        """Nodes: other ones need new daemons."""
        ...

    @property
    def settings(self) -> object:
        """Settings of slurmctld: other ones need a new daemon."""
        ...

    def rendered(self, folder: str) -> Mapping[str, str]:
        """Texts by file name for `folder`."""
        ...


def folder(home: Path, cluster: str) -> Path:
    """The folder of the Slurm of a cluster, in the home of a rehearsal.

    Its name is short: paths of sockets below it have at most 107 bytes (unix(7)).
    """
    name = cluster.rpartition("/")[2]
    if name != cluster:
        name = f"{name}-{hashlib.sha256(cluster.encode()).hexdigest()[:6]}"
    return home / "slurm" / name


def environment(home: Path, cluster: str) -> dict[str, str]:
    """Variables by which commands reach a cluster, with the scripts of its login node on PATH.

    Raises SetupError without Slurm's packages.
    """
    place = folder(home, cluster)
    found = cluster_environment(place)
    return {**found, "PATH": os.pathsep.join([found["PATH"], str(place / "login" / "scripts")])}


@dataclass(frozen=True)
class Image:
    """Programs and identity of a machine of a cluster, besides Slurm."""

    programs: Mapping[str, str] = field(default_factory=dict)
    """Programs that this machine may lack, by name."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """Variables with the identity of the machine, for services of its nodes."""


def _scripts(system: SlurmDescription) -> Mapping[str, str]:
    """Files of nodes by path, of a system whose service has some."""
    found: Mapping[str, str] = getattr(system, "scripts", {})
    return found


def settings_of(system: SlurmDescription) -> dict[str, str]:
    """Variables of the service by which jobs reach MLflow; empty without one."""
    lines = _scripts(system).get(tracking.SETTINGS, "").splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("PORT="))


class RunningClusters:
    """Starts a cluster when its login node is first used, and follows changes of its resources.

    One thread starts all processes: they end with the thread that started them. `known` are the clusters that
    exist.
    """

    def __init__(self, home: Path, known: Callable[[], Collection[str]]) -> None:
        self._home, self._known = home, known
        self._running: dict[str, tuple[SlurmDescription, LocalSlurm]] = {}
        self._addresses: dict[str, str] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slurm")

    def run(
        self,
        cluster: str,
        wanted: Callable[[], SlurmDescription],
        script: str,
        image: Image | Mapping[str, str],
    ) -> tuple[int, str]:
        """Exit code and output of a script on the login node of a cluster, which is as `wanted` says.

        Raises SetupError without the packages of Slurm.
        """
        chosen = image if isinstance(image, Image) else Image(image)
        return self._thread.submit(self._run, cluster, wanted, script, chosen).result()

    def stop(self) -> None:
        """End the processes of all clusters; does nothing if they have ended."""
        if self._running:
            self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def live(self) -> list[tuple[str, LocalNode, Path]]:
        """Cluster, node and log of each node that runs; clusters that were deleted are ended first."""
        if not set(self._known()).issuperset(self._running):
            self._thread.submit(self._forget).result()
        return [
            (cluster, one, slurm.folder / "log" / one.name)
            for cluster, (_, slurm) in self._running.items()
            for one in slurm.nodes
        ]

    def _stop(self) -> None:
        for _, slurm in self._running.values():
            slurm.stop()
        self._running = {}

    def _run(
        self, cluster: str, wanted: Callable[[], SlurmDescription], script: str, image: Image
    ) -> tuple[int, str]:
        self._forget()
        system = wanted()
        slurm, address = self._current(cluster, system), self._address(cluster)
        if settings := settings_of(system):
            port = {"PORT": address.rpartition(":")[2]}
            program = str(self._program(system))
            slurm.serve("mlflow", [sys.executable, program], **settings, **image.identity, **port)
        folder = slurm.folder / "login"
        for name in ("bin", "shared", "state", "scripts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in image.programs.items():
            (folder / "bin" / name).write_text(text, encoding="utf-8")
            (folder / "bin" / name).chmod(0o700)
        environment = {
            "TRAINSTACK_USER": slurm.user,
            "TRAINSTACK_SHARED": str(folder / "shared"),
            "TRAINSTACK_STATE": str(folder / "state"),
            "TRAINSTACK_SCRIPTS": str(folder / "scripts"),
            "PATH": os.pathsep.join(
                [str(folder / "bin"), str(Path(sys.executable).parent), slurm.environment["PATH"]]
            ),
            **({} if Path("/dev/nvidia0").exists() else {"SMOKE_DEVICE": "cpu"}),
        }
        text = script.replace(_PORT, str(free_ports(3))) if "sbatch" in script else script
        text = text.replace(tracking.ADDRESS, address)
        exports = "".join(f"export {key}={json.dumps(value)}\n" for key, value in environment.items())
        (folder / "script").write_text(exports + text, encoding="utf-8")
        done = slurm.run("bash", str(folder / "script"), folder=folder)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    def _forget(self) -> None:
        """End clusters that are deleted."""
        known = set(self._known())
        for gone in [one for one in self._running if one not in known]:
            _, slurm = self._running.pop(gone)
            slurm.stop()
            shutil.rmtree(slurm.folder, ignore_errors=True)

    def _program(self, system: SlurmDescription) -> Path:
        """The program that the unit of nodes copies from its bucket."""
        found = re.search(r"s3://([^/\s]+)/(\S+)", _scripts(system)[tracking.UNIT])
        if found is None:
            raise SetupError(f"{tracking.UNIT} copies no program")
        return folders.bucket(self._home, found[1]) / found[2]

    def _address(self, cluster: str) -> str:
        """The address of MLflow on the nodes of a cluster; all share the network of this machine."""
        if cluster not in self._addresses:
            self._addresses[cluster] = f"http://127.0.0.1:{free_ports(5)}"
        return self._addresses[cluster]

    def _files(self, cluster: str, wanted: SlurmDescription, folder: str) -> dict[str, str]:
        found, address = wanted.rendered(folder), self._address(cluster)
        return {name: text.replace(tracking.ADDRESS, address) for name, text in found.items()}

    def _current(self, cluster: str, wanted: SlurmDescription) -> LocalSlurm:
        running = self._running.get(cluster)
        if running is not None:
            system, slurm = running
            if system == wanted:
                return slurm
            if (system.groups, system.settings) == (wanted.groups, wanted.settings):
                slurm.rewrite(lambda folder: self._files(cluster, wanted, folder))
                self._running[cluster] = wanted, slurm
                return slurm
            slurm.stop()
        slurm = LocalSlurm(folder(self._home, cluster), lambda folder: self._files(cluster, wanted, folder))
        try:
            slurm.start()
        except BaseException:
            slurm.stop()
            raise
        self._running[cluster] = wanted, slurm
        return slurm
