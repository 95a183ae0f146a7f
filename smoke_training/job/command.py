"""How the script of a job is started on one node: the command line and its environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from smoke_training.job.folders import Folders
from smoke_training.job.place import Place
from smoke_training.job.settings import Settings
from smoke_training.runtime import host
from smoke_training.runtime.launch import LOOPBACK

INTERFACES = Path("/sys/class/net")
# torchrun kills ranks 30 s after it has passed a SIGTERM on (torch 2.13, `--shutdown-timeout`); the service
# waits 120 s (StopTrainingJob). What is left in between is for the record.
SHUTDOWN_S = 100


def processes(settings: Settings) -> int:
    """Processes of one node: one per GPU, one without."""
    return max(1, settings.gpus)


def distributed(settings: Settings, place: Place) -> bool:
    """Whether the script runs as several processes, so that they have to find each other."""
    return place.nodes * processes(settings) > 1


def command(settings: Settings, place: Place) -> list[str]:
    """The script by Python itself, or once per GPU by torchrun, meeting at the first host.

    Static rendezvous, for the reasons in `smoke_training.launchers.place`.
    """
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
    return [*start, settings.script, *settings.arguments]


def environment(
    inherited: Mapping[str, str], place: Place, folders: Folders, code: Path, tracking: Mapping[str, str]
) -> dict[str, str]:
    """What the script finds: its folders, this package, the network to use, its run in MLflow.

    `code` is where this package was imported from; `tracking` goes before what is inherited, and that before
    what is chosen here.
    """
    chosen = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(SHUTDOWN_S), "PYTHONUNBUFFERED": "1"}
    interface = _interface(place)
    if interface:
        chosen |= {"NCCL_SOCKET_IFNAME": interface, "GLOO_SOCKET_IFNAME": interface}
    path = os.pathsep.join(filter(None, [str(code), inherited.get("PYTHONPATH")]))
    return {**chosen, **inherited, **folders.variables(), **tracking, "PYTHONPATH": path}


def _interface(place: Place) -> str | None:
    """The network that the service names, where there is one; the loopback for nodes on one machine."""
    if place.nodes == 1:
        return None
    address = host.resolve(place.first)
    if address is not None and host.is_loopback(address):
        return LOOPBACK
    known = place.interface and (INTERFACES / place.interface).exists()
    return place.interface if known else None
