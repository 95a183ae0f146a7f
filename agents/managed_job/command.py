"""Command line and environment of a job's script on one node."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.managed_job.folders import Folders
from agents.managed_job.job_node import JobNode
from agents.managed_job.settings import JobSettings
from smoke_training.runtime import host
from smoke_training.runtime.launch import LOOPBACK

INTERFACES = Path("/sys/class/net")
# torchrun kills ranks 30 s after it has forwarded a SIGTERM (torch 2.13, `--shutdown-timeout`); the service
# waits 120 s (StopTrainingJob). The time between is used to write the record.
SHUTDOWN_S = 100


def processes(settings: JobSettings) -> int:
    """Processes of one node: one per GPU, one without."""
    return max(1, settings.gpus)


def distributed(settings: JobSettings, place: JobNode) -> bool:
    """Report whether the script runs as several processes, which need a rendezvous."""
    return place.nodes * processes(settings) > 1


def command(settings: JobSettings, place: JobNode) -> list[str]:
    """Return the command line: plain Python, or torchrun with one process per GPU; bash for a shell script.

    Static rendezvous, for the reasons in `infra.launchers.rendezvous`.
    """
    if is_shell(settings):
        return ["bash", _path(settings), *settings.arguments]
    start = [sys.executable, "-u"]
    if distributed(settings, place):
        start += [
            "-m",
            "torch.distributed.run",
            f"--nnodes={place.nodes}",
            f"--node-rank={place.index}",
            f"--nproc-per-node={processes(settings)}",
            f"--master-addr={place.first if place.nodes > 1 else '127.0.0.1'}",
            f"--master-port={settings.port}",
            "--max-restarts=0",
        ]
    script = ["-m", settings.module] if settings.module else [_path(settings)]
    return [*start, *script, *settings.arguments]


def is_shell(settings: JobSettings) -> bool:
    """Report whether the script is a shell script, which starts its processes itself, once per node."""
    return settings.script.endswith((".sh", ".bash"))


def rendezvous(settings: JobSettings, place: JobNode) -> dict[str, str]:
    """Return the variables by which a plain `torchrun train.py` in a shell script joins all nodes.

    torchrun reads each option from a variable with this prefix (torch 2.13
    torch/distributed/argparse_util.py, env).
    """
    options = {
        "NNODES": str(place.nodes),
        "NODE_RANK": str(place.index),
        "NPROC_PER_NODE": str(processes(settings)),
        "MASTER_ADDR": place.first if place.nodes > 1 else "127.0.0.1",
        "MASTER_PORT": str(settings.port),
    }
    return {f"PET_{name}": value for name, value in options.items()}


def _path(settings: JobSettings) -> str:
    """Return the script for a command line, where a leading dash would begin an option."""
    return f"./{settings.script}" if settings.script.startswith("-") else settings.script


def environment(
    inherited: Mapping[str, str],
    place: JobNode,
    folders: Folders,
    code: Sequence[Path],
    tracking: Mapping[str, str],
) -> dict[str, str]:
    """Return the script's environment: folders, this package, the network to use, its run in MLflow.

    `code` is where this package was imported from, and the folder of the run: a script below imports from
    there, as `python -m` does. `tracking` overrides inherited variables, and those override the ones here.
    """
    chosen = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(SHUTDOWN_S), "PYTHONUNBUFFERED": "1"}
    interface = _interface(place)
    if interface:
        chosen |= {"NCCL_SOCKET_IFNAME": interface, "GLOO_SOCKET_IFNAME": interface}
    path = os.pathsep.join(filter(None, [*map(str, code), inherited.get("PYTHONPATH")]))
    return {**chosen, **inherited, **folders.variables(), **tracking, "PYTHONPATH": path}


def _interface(place: JobNode) -> str | None:
    """Return the network that the service names, if any; the loopback for nodes on one machine."""
    if place.nodes == 1:
        return None
    address = host.resolve(place.first)
    if address is not None and host.is_loopback(address):
        return LOOPBACK
    known = place.interface and (INTERFACES / place.interface).exists()
    return place.interface if known else None
