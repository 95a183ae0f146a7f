"""Files of Slurm as a managed service would write them, from the resources of a stack (pure).

Nodes are called `<group>-1` and so on, as in the tutorial of AWS PCS; names in Cluster Director are
unknown. Settings of users are taken as they are;
the rest are the service's own, of which only those are public that its documentation names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.slurm.machines import NodeHardware
from rehearsal.slurm.local_files import one_of


@dataclass(frozen=True)
class SlurmGroup:
    """Nodes of one machine type."""

    id: str
    name: str
    nodes: int
    hardware: NodeHardware
    settings: Mapping[str, str]

    @property
    def hosts(self) -> str:
        """All nodes as a host list."""
        return f"{self.name}-1" if self.nodes == 1 else f"{self.name}-[1-{self.nodes}]"


@dataclass(frozen=True)
class Queue:
    """A partition with the ids of its groups."""

    name: str
    groups: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class ServiceSystem:
    """A cluster with its groups and partitions."""

    name: str
    settings: Mapping[str, str]
    groups: tuple[SlurmGroup, ...]
    queues: tuple[Queue, ...]
    scripts: Mapping[str, str]
    """Files of nodes by path, from their user data."""

    def rendered(self, folder: str) -> dict[str, str]:
        """Texts by file name for `folder`."""
        return files(self, folder)


_OWN = {
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "GresTypes": "gpu",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "PriorityType": "priority/multifactor",
    "ReturnToService": "2",
}
"""The service's own settings, as far as a job notices them."""
_HIDDEN = "hidden-none"


def files(system: ServiceSystem, folder: str) -> dict[str, str]:
    """Texts by file name for `folder`."""
    rows = {"ClusterName": system.name, "SlurmctldHost": "slurmctld", **_OWN, **system.settings}
    lines = [f"{key}={_placed(value, system, folder)}" for key, value in rows.items()]
    lines += [_node(one) for one in system.groups]
    by_id = {one.id: one for one in system.groups}
    for queue in system.queues:
        hosts = ",".join(by_id[one].hosts for one in queue.groups if one in by_id)
        chosen = " ".join(f"{key}={value}" for key, value in queue.settings.items())
        lines.append(f"PartitionName={queue.name} Nodes={hosts} State=UP {chosen}")
    if not system.queues:
        # Slurm does not start without a partition; the service hides its own.
        hosts = ",".join(one.hosts for one in system.groups)
        lines.append(f"PartitionName={_HIDDEN} Nodes={hosts} Hidden=YES State=DOWN")
    gres = [
        f"NodeName={one.hosts} AutoDetect=nvml Name=gpu Type={one.hardware.gpu_type}"
        for one in system.groups
        if one.hardware.gpus
    ]
    scripts = {one_of(path): text for path, text in system.scripts.items()}
    register = f"#!/bin/sh\nsacctmgr -i add cluster {system.name} > /dev/null 2>&1 || true\n"
    return {
        **scripts,
        "slurm.conf": "\n".join(lines) + "\n",
        "gres.conf": "\n".join(gres) + "\n",
        "accounts.sh": register,
    }


def _node(one: SlurmGroup) -> str:
    found = one.hardware
    chosen = {"RealMemory": str(found.memory_mib), **one.settings}
    gres = f" Gres=gpu:{found.gpu_type}:{found.gpus}" if found.gpus else ""
    more = " ".join(f"{key}={value}" for key, value in chosen.items())
    return f"NodeName={one.hosts} CPUs={found.cpus}{gres} {more} State=UNKNOWN"


def _placed(value: str, system: ServiceSystem, folder: str) -> str:
    """The path of a script of the nodes in `folder`."""
    return f"{folder}/{one_of(value)}" if value in system.scripts else value
