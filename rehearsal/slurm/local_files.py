"""Generated files of a Slurm system for daemons that all run on this machine (pure).

Only what a machine without GPUs, cgroups and munge cannot have is replaced; all other lines stay.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LocalPlace:
    """Folders, ports and user of the daemons of a cluster."""

    folder: Path
    packages: Path
    plugins: Path
    host: str
    user: str
    port: int
    quick: Mapping[str, str]
    """Keys of slurm.conf with shorter times, for tests."""


@dataclass(frozen=True)
class LocalNode:
    """A node: its own address and port."""

    name: str
    address: str
    port: int
    gpus: int


def one_of(path: str) -> str:
    """The file name of a path."""
    return path.rpartition("/")[2]


def local_files(files: Mapping[str, str], place: LocalPlace) -> tuple[dict[str, str], list[LocalNode]]:
    """The files, and the nodes of slurm.conf in order."""
    nodes: list[LocalNode] = []
    lines = [_addressed(line, place, nodes) for line in files["slurm.conf"].splitlines()]
    replaced = _replaced(place)
    kept = [line for line in lines if line.partition("=")[0] not in replaced]
    kept += ["", "## This machine", *(f"{key}={value}" for key, value in replaced.items() if value)]
    changed = {
        "slurm.conf": "\n".join(kept) + "\n",
        "gres.conf": _gres(files["gres.conf"], place, nodes),
        "hosts": _hosts(nodes, place),
        "plugstack.conf": "",
    }
    return {**files, **changed}, nodes


def _replaced(place: LocalPlace) -> dict[str, str]:
    folder = place.folder
    return {
        "SlurmctldHost": f"{place.host}(127.0.0.1)",
        "SlurmctldPort": str(place.port),
        "SlurmUser": place.user,
        "SlurmdUser": place.user,
        "AuthType": "auth/none",
        "CredType": "cred/none",
        # A requeued job waits until its old credential is over: 121 s by default, 5 is the least.
        "AuthInfo": "cred_expire=5",
        "PluginDir": str(place.plugins),
        "PlugStackConfig": str(folder / "etc/plugstack.conf"),
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "MpiDefault": "none",
        "MailProg": "/bin/true",
        "PrologFlags": "Alloc",
        "TaskProlog": str(folder / "etc/taskprolog.sh"),
        "StateSaveLocation": str(folder / "state"),
        "SlurmdSpoolDir": str(folder / "spool/%n"),
        "SlurmctldPidFile": str(folder / "run/slurmctld.pid"),
        "SlurmdPidFile": str(folder / "run/%n.pid"),
        "SlurmctldLogFile": str(folder / "log/slurmctld.log"),
        "SlurmdLogFile": str(folder / "log/%n.log"),
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(place.port + 1),
        # The hardware of node lines is taken for granted.
        "SlurmdParameters": "config_overrides",
        **place.quick,
    }


def _addressed(line: str, place: LocalPlace, nodes: list[LocalNode]) -> str:
    found = re.match(r"NodeName=(?P<prefix>\S+?)(\[(?P<first>\d+)-(?P<last>\d+)\]|(?P<only>\d+)) ", line)
    if found is None:
        return line
    first = int(found["first"] or found["only"])
    last = int(found["last"] or first)
    start, gpus = len(nodes) + 1, re.search(r"Gres=gpu:\w+:(\d+)", line)
    for number in range(first, last + 1):
        index = len(nodes) + 1
        count = int(gpus[1]) if gpus else 0
        nodes.append(
            LocalNode(f"{found['prefix']}{number}", f"127.0.1.{index}", place.port + 10 + index, count)
        )
    span = "{}" if first == last else "[{}-{}]"
    address = f"127.0.1.{span.format(start, len(nodes))}"
    port = span.format(place.port + 10 + start, place.port + 10 + len(nodes))
    return f"{line} NodeHostname={place.host} NodeAddr={address} Port={port}"


def _gres(text: str, place: LocalPlace, nodes: list[LocalNode]) -> str:
    """There is no NVML: a GPU is a link to a character device, which slurmd accepts."""
    counts = {one.name.rpartition("-")[0]: one.gpus for one in nodes}
    lines = ["AutoDetect=off"]
    for line in text.splitlines():
        found = re.match(r"NodeName=(\S+?)-(\[|\d)", line)
        if found:
            count = counts[found[1]]
            devices = f"nvidia[0-{count - 1}]" if count > 1 else "nvidia0"
            plain = line.replace("AutoDetect=nvml ", "")
            lines.append(f"{plain} File={place.folder / 'dev' / devices}")
    return "\n".join(lines) + "\n"


def _hosts(nodes: list[LocalNode], place: LocalPlace) -> str:
    rows = [("127.0.0.1", f"localhost {place.host}"), *((one.address, one.name) for one in nodes)]
    return "".join(f"{address} {name}\n" for address, name in rows)
