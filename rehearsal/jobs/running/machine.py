"""A machine of a job of any managed service: its folder, address and container process."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.jobs.running import python_environment
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.rewriting import Host as Place
from rehearsal.workloads.rewriting import LocalNames, rewrite
from rehearsal.workloads.translate import ALL_ADDRESSES, INTERFACES, ProcessPlan, clean_start, port_of_run

_SHELL, _PYTHON = re.compile(r"(/usr)?(/bin/)?(bash|sh)"), re.compile(r"(.*/)?python3?(\.\d+)?")
# Machines of jobs share processors, so waiting threads yield theirs (OpenMP 5.2, 21.1): a
# small model on two threads takes half the processor time.
_SHARED = {"OMP_WAIT_POLICY": "PASSIVE"}
# Rendezvous port of a job's machines: here all jobs share the ports of one machine.
_PORTS = ("MASTER_PORT", "PET_MASTER_PORT", "TRAINSTACK_MASTER_PORT")


class MachineProcess:
    """One machine; `addresses` maps the names of the job's machines to their addresses."""

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
        """Start the container's command; `grace_s` is the time between SIGTERM and SIGKILL.

        `job` identifies the job and is the same for all its machines.
        """
        clean = clean_start(self.folder, self.name)
        python = python_environment.create(self.folder / "python")
        own = {"PATH": f"{python.parent}:{clean['PATH']}", "VIRTUAL_ENV": str(python.parents[1])}
        here = {**dict.fromkeys(INTERFACES, "lo"), **dict.fromkeys(_PORTS, port_of_run(job))}
        env = {**clean, **own, **_SHARED, **environment, **here}
        words = tuple(str(python) if word == sys.executable else word for word in argv)
        self.process = ContainerProcess(
            ProcessPlan(argv=words, env=env, cwd=self.folder / "home"), self.log, cpus, grace_s
        )

    def exit_code(self) -> int | None:
        """Exit code of the command; None while it runs."""
        return self.process.exit_code() if self.process else None

    def stop(self) -> None:
        """Send SIGTERM."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Kill every process of the machine."""
        if self.process is not None:
            self.process.kill()

    def describe(self) -> dict[str, Any]:
        """A row of `status`, in the form of a pod's."""
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
        """Rewrites text of a request for this machine; `paths` maps paths of the container.

        URIs of buckets are not rewritten: the object store serves them with the rights of the job.
        """
        space = "job"
        hosts = {f"{name}.{space}.svc.cluster.local": Place(at) for name, at in self.addresses.items()}
        world = LocalNames(space, {**paths, "/tmp": self.folder / "tmp"}, hosts)  # noqa: S108 - in the container

        def here(text: str) -> str:
            return self.address if text == ALL_ADDRESSES else located(rewrite(text, world))

        return here


def program(command_line: Sequence[str]) -> str:
    """The local program for a container's command. Raises LookupError without one."""
    word = command_line[0] if command_line else ""
    if _PYTHON.fullmatch(word):
        return sys.executable
    if not _SHELL.fullmatch(word):
        raise LookupError(
            f"the rehearsal cannot run {word or 'the entrypoint of an image'}: it has no images. Jobs whose "
            "command begins with bash or python run."
        )
    found = shutil.which(word.rpartition("/")[2])
    if found is None:
        raise LookupError(f"this machine has no {word}, with which the job's command begins")
    return found


def missing_hardware(*, emulated: bool) -> dict[str, str]:
    """Variables that let a validation run without GPUs and record it; pods get the same."""
    return {"SMOKE_DEVICE": "cpu"} if emulated and not Path("/dev/nvidia0").exists() else {}
