"""A Slurm system as settings of AWS Parallel Computing Service.

They are the rows of `slurm.conf` that the service lets a user change (infra/catalog/aws/tables/pcs.toml). The
service itself sets the others: controller, credentials, the topology and the starts and ends of machines. It
derives processors and GPUs of a node from its machine type (API_ComputeNodeGroupSlurmConfiguration).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from infra.catalog.aws.pcs import Level, pcs
from infra.slurm import conf, tracking
from infra.slurm.system import Partition, SlurmSystem

_GPUS: Final = "gres/gpu"
SERVICE_SETS: Final = (
    *("ClusterName", "SlurmctldHost", "SlurmUser", "AuthType", "CredType", "StateSaveLocation"),
    *("SlurmdSpoolDir", "SlurmctldLogFile", "SlurmdLogFile", "SchedulerType", "SelectType", "GresTypes"),
    *("TopologyPlugin", "AccountingStorageType", "AccountingStorageHost", "PriorityType", "ProctrackType"),
    *("TaskPlugin", "JobAcctGatherType", "State"),
)
"""Settings that the service has its own values for."""
LOST: Final[Mapping[str, str]] = {
    "SlurmdTimeout": "a lost node is DOWN after the service's time, not after 180 s",
    "ReturnToService": "the service replaces instances that fail",
    "KillWait": "a preempted job has the service's time between SIGTERM and SIGKILL, not 60 s",
    "DefCpuPerGPU": "jobs name --cpus-per-gpu or --cpus-per-task",
    "DefMemPerGPU": "DefMemPerCPU of the cluster is the smallest share of memory per processor instead",
}
"""Settings of `slurm render` that a stack on the service does without, with the effect."""


def cluster_settings(system: SlurmSystem) -> dict[str, str]:
    """Custom settings of the cluster."""
    rows = {key: value for _, rows in conf.sections(system) for key, value, _ in rows}
    if "AccountingStorageTRES" in rows:
        # The service names the types of GPUs, and a TRES of a type that no node has is refused.
        rows["AccountingStorageTRES"] = _GPUS
    shares = [one.machine.memory_mib // one.machine.cpus for one in system.partitions]
    rows["DefMemPerCPU"] = str(min(shares))
    rows["TaskProlog"] = f"{system.options.folder}/{tracking.PROLOG}"
    return _allowed("cluster", rows)


def group_settings(partition: Partition) -> dict[str, str]:
    """Custom settings of the compute node group of a partition."""
    return _allowed("group", conf.node_settings(partition))


def queue_settings(system: SlurmSystem, partition: Partition) -> dict[str, str]:
    """Custom settings of the queue of a partition."""
    return _allowed("queue", conf.partition_settings(system, partition))


def not_settable(system: SlurmSystem) -> Iterator[str]:
    """Settings of `slurm render` for this system that the service does not let a user change."""
    rows = {key for _, rows in conf.sections(system) for key, *_ in rows}
    rows |= {key for one in system.partitions for key in conf.partition_settings(system, one)}
    settable = {name for level in pcs.settings.values() for name in level.names}
    yield from sorted(rows - settable)


def _allowed(level: Level, rows: Mapping[str, str]) -> dict[str, str]:
    names = pcs.settings[level].names
    return {key: value for key, value in rows.items() if key in names}
