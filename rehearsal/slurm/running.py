"""Clusters of managed services of a rehearsal: a real Slurm of this machine for each."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

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


class RunningClusters:
    """Starts a cluster when its login node is first used, and follows changes of its resources.

    One thread starts all processes: they end with the thread that started them. `known` are the clusters that
    exist.
    """

    def __init__(self, home: Path, known: Callable[[], Collection[str]]) -> None:
        self._home, self._known = home, known
        self._running: dict[str, tuple[SlurmDescription, LocalSlurm]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slurm")

    def run(
        self, cluster: str, wanted: Callable[[], SlurmDescription], script: str, programs: Mapping[str, str]
    ) -> tuple[int, str]:
        """Exit code and output of a script on the login node of a cluster, which is as `wanted` says.

        `programs` are those of the machine image that this machine may lack. Raises SetupError without the
        packages of Slurm.
        """
        return self._thread.submit(self._run, cluster, wanted, script, programs).result()

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
        self, cluster: str, wanted: Callable[[], SlurmDescription], script: str, programs: Mapping[str, str]
    ) -> tuple[int, str]:
        self._forget()
        slurm = self._current(cluster, wanted())
        folder = slurm.folder / "login"
        for name in ("bin", "shared", "state", "scripts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in programs.items():
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

    def _current(self, cluster: str, wanted: SlurmDescription) -> LocalSlurm:
        running = self._running.get(cluster)
        if running is not None:
            system, slurm = running
            if system == wanted:
                return slurm
            if (system.groups, system.settings) == (wanted.groups, wanted.settings):
                slurm.rewrite(wanted.rendered)
                self._running[cluster] = wanted, slurm
                return slurm
            slurm.stop()
        slurm = LocalSlurm(folder(self._home, cluster), wanted.rendered)
        try:
            slurm.start()
        except BaseException:
            slurm.stop()
            raise
        self._running[cluster] = wanted, slurm
        return slurm
