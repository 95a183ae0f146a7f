"""A machine of a job of any managed service: its folder, its address, and the process of the container."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.rewriting import Host as Place
from rehearsal.workloads.rewriting import LocalNames, rewrite
from rehearsal.workloads.translate import ALL_ADDRESSES, INTERFACES, Plan, clean_start, port_of_run

_SHELL, _PYTHON = re.compile(r"(/usr)?(/bin/)?(bash|sh)"), re.compile(r"(.*/)?python3?(\.\d+)?")
# Machines of jobs share processors, so threads that wait for others let go of theirs (OpenMP 5.2, 21.1): a
# small model on two threads takes half the processor time.
_SHARED = {"OMP_WAIT_POLICY": "PASSIVE"}
# Where the machines of a job meet: here all jobs share the ports of one machine.
_PORTS = ("MASTER_PORT", "PET_MASTER_PORT", "TRAINSTACK_MASTER_PORT")


class JobMachine:
    """One machine; `addresses` are those of all machines of the job by name."""

    def __init__(self, name: str, folder: Path, addresses: Mapping[str, str]) -> None:
        self.name, self.folder, self.address = name, folder, addresses[name]
        self.addresses = dict(addresses)
        self.log = folder / "log"
        self.process: ContainerProcess | None = None

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        job: str,
        cpus: Sequence[int],
        grace_s: float,
    ) -> None:
        """Start the container's command; `grace_s` is from a polite end to a certain one, in seconds.

        `job` is the same for all machines of a job, and no other job's.
        """
        here = {**dict.fromkeys(INTERFACES, "lo"), **dict.fromkeys(_PORTS, port_of_run(job))}
        env = {**clean_start(self.folder, self.name), **_SHARED, **environment, **here}
        self.process = ContainerProcess(
            Plan(argv=tuple(argv), env=env, cwd=self.folder / "home"), self.log, cpus, grace_s
        )

    def exit_code(self) -> int | None:
        """What the command ended with; None while it runs."""
        return self.process.exit_code() if self.process else None

    def stop(self) -> None:
        """Ask for an orderly end."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """End everything that runs on it."""
        if self.process is not None:
            self.process.kill()

    def describe(self) -> dict[str, Any]:
        """A row for people, of the form of a pod's."""
        process = self.process
        supervisors = [process.supervisor_pid] if process and process.exit_code() is None else []
        return {
            "pod": self.name,
            "address": self.address,
            "pids": supervisors + (process.pids() if process else []),
            "log": str(self.log),
        }

    def translator(
        self, paths: Mapping[str, Path], located: Callable[[str], str] = lambda text: text
    ) -> Callable[[str], str]:
        """What makes text of a request mean the same on this machine; `paths` are those of the container.

        URIs of buckets stay as they are: the object store answers the job's own requests, with its rights.
        """
        space = "job"
        hosts = {f"{name}.{space}.svc.cluster.local": Place(at) for name, at in self.addresses.items()}
        world = LocalNames(space, {**paths, "/tmp": self.folder / "tmp"}, hosts)  # noqa: S108 - in the container

        def here(text: str) -> str:
            return self.address if text == ALL_ADDRESSES else located(rewrite(text, world))

        return here


def program(words: Sequence[str]) -> str:
    """The program of this machine for the command of a container. Raises LookupError when there is none."""
    word = words[0] if words else ""
    if _PYTHON.fullmatch(word):
        return sys.executable
    if not _SHELL.fullmatch(word):
        raise LookupError(
            f"the rehearsal cannot run {word or 'the entrypoint of an image'}: it has no images. Jobs whose "
            "command begins with bash or python really run."
        )
    found = shutil.which(word.rpartition("/")[2])
    if found is None:
        raise LookupError(f"this machine has no {word}, with which the job's command begins")
    return found


def missing_hardware(*, emulated: bool) -> dict[str, str]:
    """Makes a validation believe that its machine has no GPUs, as its result then says; pods get the same."""
    return {"SMOKE_DEVICE": "cpu"} if emulated and not Path("/dev/nvidia0").exists() else {}
