"""A Slurm system as settings of SchedMD's slurm-operator (Slinky).

The operator writes slurm.conf: rows of its own, a NodeSet and a partition for each pool, and at the end what
`Controller.spec.extraConf` says (SlinkyProject/slurm-operator v1.1.0,
internal/builder/controllerbuilder/controller_config.go, `buildSlurmConf`). A node registers itself with the
settings of its pool (`slurmd -Z --conf`, internal/builder/workerbuilder/worker_app.go, `slurmdConfArgs`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from infra.slurm import conf
from infra.slurm.system import Partition, SlurmSystem

SCRIPTS: Final = "/opt/trainstack/slurm"
"""Folder of health.sh on every node."""
OPERATOR_SETS: Final = (
    *("ClusterName", "SlurmUser", "SlurmctldHost", "SlurmctldPort", "StateSaveLocation", "SlurmdUser"),
    *("SlurmdPort", "SlurmdSpoolDir", "ReturnToService", "MaxNodeCount", "GresTypes", "SlurmctldLogFile"),
    *("SlurmSchedLogFile", "SlurmdLogFile", "LogTimeFormat", "AuthType", "CredType", "AuthAltTypes"),
    *("AuthAltParameters", "AuthInfo", "CommunicationParameters", "SelectTypeParameters"),
    *("SlurmctldParameters", "ProctrackType", "PrologFlags", "TaskPlugin", "AccountingStorageType"),
    *("AccountingStorageHost", "AccountingStoragePort", "AccountingStorageTRES", "JobAcctGatherType"),
    *("Prolog", "Epilog"),
)
"""Settings that the operator writes itself."""
LOST: Final[Mapping[str, str]] = {
    "PrologFlags": "`Contain` without `Alloc`: a node is checked when the first step of a job starts there",
    "AccountingStorageTRES": "GPUs are counted in total, not by type",
    "topology.yaml": "nodes have no place in a tree: pools with several racks need their own configuration",
}
"""Settings of `slurm render` that such a stack does without, with the effect."""
_CGROUP: Final = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
"""What the operator writes where there is no cgroup.conf; there is no systemd in a container."""
_THREADS: Final = 2
"""Threads of a core of x86 machine types. The image gives jobs whole cores of the pod's processors
(slurmd-entrypoint.sh, `calculateCoreSpecCount`); a multiple of two is whole cores with one thread, too."""


def extra_conf(system: SlurmSystem, *, max_jobs: int | None) -> str:
    """`Controller.spec.extraConf`: the rows that the operator has not."""
    rows = {key: value for _, rows in conf.sections(system) for key, value, _ in rows}
    kept = {key: value for key, value in rows.items() if key not in OPERATOR_SETS}
    # Nodes exist once their pod registers: a job must wait for them, and not be refused.
    kept["EnforcePartLimits"] = "NO"
    # Users without an entry in the image's /etc/passwd: names come with the job (nss_slurm).
    kept["LaunchParameters"] = "enable_nss_slurm"
    if max_jobs is not None:
        kept["MaxJobCount"] = str(max_jobs)
    return "\n".join(f"{key}={value}" for key, value in kept.items())


def in_pods(system: SlurmSystem, sizes: Mapping[str, tuple[int, int]]) -> SlurmSystem:
    """The system with nodes as large as their pods: processors, in whole cores, and MiB of memory by pool.

    Defaults of jobs and prices are shares of a node, and a share of the machine would not fit into its pod.
    """
    return replace(system, partitions=tuple(_in_pod(one, *sizes[one.name]) for one in system.partitions))


def _in_pod(one: Partition, cpus: int, memory_mib: int) -> Partition:
    found = one.machine
    memory = min(found.memory_mib, memory_mib)
    return replace(one, machine=replace(found, cpus=_whole(min(found.cpus, cpus)), memory_mib=memory))


def _whole(cpus: int) -> int:
    """Processors of the whole cores among `cpus`, at least one."""
    return max(cpus // _THREADS * _THREADS, 1)


def node_conf(one: Partition) -> str:
    """`NodeSet.spec.extraConf`: GPUs and features of a node.

    Without `Gres`, GPUs that slurmd finds are ignored, and jobs cannot ask for them
    (SlinkyProject/slurm-operator#101, #106, #111). Without `RealMemory`, slurmd reports the machine's, of
    which the image takes all but the pod's (slurmd-entrypoint.sh, `calculateMemSpecLimit`): it would take the
    same from less, and jobs with default memory would not fit (GoogleCloudPlatform/cluster-toolkit#3300).
    """
    found, chosen = one.machine, conf.node_settings(one)
    del chosen["RealMemory"]
    gres = {"Gres": f"gpu:{found.gpu_type}:{found.gpus}"} if found.gpus else {}
    return " ".join(f"{key}={value}" for key, value in {**gres, **chosen}.items())


def partition_conf(system: SlurmSystem, one: Partition) -> str:
    """`NodeSet.spec.partition.config`: the partition line after its name and nodes."""
    settings = conf.partition_settings(system, one)
    if gpus := one.machine.gpus:
        # Jobs get whole cores: a share that ends within one would leave the last GPU without.
        settings["DefCpuPerGPU"] = str(_whole(one.machine.cpus // gpus))
    return " ".join(f"{key}={value}" for key, value in settings.items())


def config_files() -> dict[str, str]:
    """Files beside slurm.conf. Devices are constrained, or a job sees all GPUs (slurm-operator#45)."""
    return {
        "cgroup.conf": _CGROUP + conf.cgroup_conf(),
        # Of the driver's files, without NVML, which the operator's images have not (gres.conf, AutoDetect).
        "gres.conf": "AutoDetect=nvidia\n",
    }


def registered(system: SlurmSystem) -> str:
    """Lines of bash that wait until every node has registered with slurmctld; exit code 4: not in time."""
    wanted = " ".join(f"{one.name}:{one.nodes}" for one in system.partitions)
    return f"""for pool in {wanted}; do
  name=${{pool%:*}} most=${{pool#*:}} found=0
  for attempt in $(seq 120); do
    found=$(sinfo -h -p "$name" -o %D | awk '{{ n += $1 }} END {{ print n + 0 }}')
    [ "$found" -lt "$most" ] || break; sleep 5
  done
  [ "$found" -ge "$most" ] || {{ echo "$found of $most nodes of $name have registered"; exit 4; }}
done
"""
