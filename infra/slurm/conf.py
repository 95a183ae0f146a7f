"""slurm.conf and cgroup.conf: each key with its reason.

Keys are those of Slurm 22.05 to 25.11 (slurm.schedmd.com/slurm.conf.html, read 2026-11-29); 22.05 loads them
in tests. No key of these exists only in newer versions; topology.yaml does (`topology.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog import slurm_names as names
from infra.slurm.options import YAML_TOPOLOGY
from infra.slurm.system import Partition, SlurmSystem, host_list

Row = tuple[str, str, str]
"""Key, value, reason."""

MILLS: Final = 1000
"""Billing units of a dollar: Slurm keeps a job's billing as a whole number (slurm.schedmd.com/tres.html, "the
Billing TRES values for a job are stored as integers"), so dollars and cents an hour would round too much."""
RESUME_S: Final = 1800
"""Time in which a machine must start: aws-parallelcluster-cookbook PR 960 lowered it from 3600 to 1800."""
SUSPEND_S: Final = 120
_GIB: Final = 1024


def slurm_conf(system: SlurmSystem) -> str:
    """The whole slurm.conf."""
    lines = [f"# {system.cluster}: written by `trainstack slurm render`; changes here are lost."]
    for title, rows in sections(system):
        lines += ["", f"## {title}"]
        for key, value, reason in rows:
            lines += [f"# {reason}", f"{key}={value}"]
    lines += ["", "## Nodes: features are machine type, way of purchase and purpose"]
    for one in system.partitions:
        lines += [*_nodes(system, one)]
    lines += ["", "## Partitions"]
    for one in system.partitions:
        lines += [*_partition(system, one)]
    return "\n".join(lines) + "\n"


def sections(system: SlurmSystem) -> Iterator[tuple[str, Sequence[Row]]]:
    """Titles and rows of all settings outside of node and partition lines."""
    yield "Cluster", [*_cluster(system)]
    yield "Scheduling and selection of resources", [*_scheduling(system)]
    yield "Accounts, limits, priorities", [*_accounting(system)]
    yield "Processes and checks on nodes", [*_processes(system)]
    yield "Loss of nodes", [*_loss()]
    if system.options.powers:
        yield "Machines that start and end with the work", [*_power(system)]


def cgroup_conf() -> str:
    """cgroup.conf."""
    rows: Sequence[Row] = (
        ("ConstrainCores", "yes", "A job uses the cores that it asked for."),
        (
            "ConstrainDevices",
            "yes",
            "A job that asks for one GPU sees one (SlinkyProject/slurm-operator#45).",
        ),
        ("ConstrainRAMSpace", "yes", "A job over its memory is ended, not its neighbours."),
    )
    return "".join(f"# {reason}\n{key}={value}\n" for key, value, reason in rows)


def billing_weights(partition: Partition) -> dict[str, float]:
    """Weights of TRES whose largest product is the job's price in mills per hour; `Mem` per GiB.

    With PriorityFlags=MAX_TRES (slurm.conf), billing is the largest of the weighted TRES: the part of the
    node that no other job can use, times the price of the node. Empty for a partition without a price.
    """
    if partition.usd is None:
        return {}
    mills, found = partition.usd * MILLS, partition.machine
    weights = {"CPU": mills / found.cpus, "Mem": mills / (found.memory_mib / _GIB)}
    if found.gpus:
        weights["GRES/gpu"] = mills / found.gpus
    return weights


def _cluster(system: SlurmSystem) -> Iterator[Row]:
    chosen = system.options
    yield "ClusterName", system.cluster, "Name of the stack; slurmdbd keeps books under it."
    yield "SlurmctldHost", chosen.controller, "Host of slurmctld."
    yield "SlurmUser", "slurm", "slurmctld needs no root."
    yield "AuthType", "auth/munge", "Credentials of messages; every host has the same munge key."
    yield "CredType", "cred/munge", "Credentials of job steps."
    yield "StateSaveLocation", "/var/spool/slurmctld", "Queue and jobs survive a restart of slurmctld."
    yield "SlurmdSpoolDir", "/var/spool/slurmd", "Scripts of jobs on a node."
    yield "SlurmctldLogFile", "/var/log/slurm/slurmctld.log", "Else messages go to syslog alone."
    yield "SlurmdLogFile", "/var/log/slurm/slurmd.log", "Else messages go to syslog alone."
    if system.options.powers:
        yield "PrivateData", "cloud", "Suspended nodes are hidden from sinfo otherwise."


def _scheduling(system: SlurmSystem) -> Iterator[Row]:
    yield "SchedulerType", "sched/backfill", "Short jobs run in gaps before large ones; needs time limits."
    yield "SelectType", "select/cons_tres", "Jobs share nodes by core, memory and GPU."
    reason = "Memory is a resource: without it a job may use what others need, and RealMemory has no effect."
    yield "SelectTypeParameters", "CR_Core_Memory", reason
    if system.gpu_types:
        # aws/aws-parallelcluster#5731 and #6641.
        reason = "Only set where nodes have GPUs: without one, requeued jobs end in BadConstraints."
        yield "GresTypes", "gpu", reason
    yield (
        "EnforcePartLimits",
        "ALL",
        "A job that no partition can run is refused, instead of waiting for ever.",
    )
    if system.options.release < YAML_TOPOLOGY:
        yield "TopologyPlugin", "topology/tree", "Jobs are placed below few switches (topology.conf)."


def _accounting(system: SlurmSystem) -> Iterator[Row]:
    chosen = system.options
    yield "AccountingStorageType", "accounting_storage/slurmdbd", "Accounts, QOS, budgets and sacct need it."
    yield "AccountingStorageHost", chosen.accounting or chosen.controller, "Host of slurmdbd."
    if system.gpu_types:
        typed = ",".join(f"gres/gpu:{one}" for one in system.gpu_types)
        reason = "GPUs are counted, in total and by type: no limit applies to what is not."
        yield "AccountingStorageTRES", f"gres/gpu,{typed}", reason
    reason = "safe: a job starts only if it can finish within a budget, and is never ended for one."
    yield "AccountingStorageEnforce", "associations,limits,qos,safe", reason
    yield "AccountingStoreFlags", "job_comment", "Not job_env: environments have credentials."
    yield "PriorityType", "priority/multifactor", "Order by QOS, share of the account, and age."
    yield "PriorityFlags", "MAX_TRES", "A job is billed for the largest part of a node that it takes."
    reason = "Usage is not forgotten within a month: budgets are of a calendar month."
    yield "PriorityDecayHalfLife", "0", reason
    yield "PriorityUsageResetPeriod", "MONTHLY", "Budgets begin anew; slurmctld's time zone should be UTC."
    yield "PriorityWeightQOS", "1000000", "A job within its team's quota comes before one that borrows."
    yield "PriorityWeightFairshare", "100000", "Then the account that used least of its share."
    yield "PriorityWeightAge", "1000", "Then the job that waits longest."
    yield "PreemptType", "preempt/qos", f"Jobs within a quota preempt those of QOS {names.BORROW}."
    yield "PreemptMode", "REQUEUE", "A preempted job runs again, from its checkpoint."
    yield "JobRequeue", "1", "A job of a lost node runs again, unless it says --no-requeue."


def _processes(system: SlurmSystem) -> Iterator[Row]:
    folder = system.options.folder
    yield "ProctrackType", "proctrack/cgroup", "All processes of a job end with it."
    yield "TaskPlugin", "task/cgroup,task/affinity", "cgroup.conf: cores, memory and GPUs of a job."
    yield "JobAcctGatherType", "jobacct_gather/cgroup", "Memory and processor time of jobs for sacct."
    yield "PrologFlags", "Alloc,Contain", "A node is checked before a job starts on any of its nodes."
    yield "Prolog", f"{folder}/prolog.sh", "A node whose check fails is drained; its job runs elsewhere."
    yield "Epilog", f"{folder}/epilog.sh", "A node is checked after each job."
    yield "HealthCheckProgram", f"{folder}/health.sh", "Idle nodes are checked, too."
    yield "HealthCheckInterval", "300", "Seconds."
    yield "HealthCheckNodeState", "IDLE,CYCLE", "Not beside a run, which it would slow down."


def _loss() -> Iterator[Row]:
    yield "SlurmdTimeout", "180", "Seconds without answer until a node is DOWN and its jobs are requeued."
    yield "ReturnToService", "2", "A node that is back and whole is used again."
    reason = "Seconds between SIGTERM and SIGKILL at a preemption or the time limit, for a last checkpoint."
    yield "KillWait", "60", reason
    yield "UnkillableStepTimeout", "180", "Writes to a file system may delay the end of a process."


def _power(system: SlurmSystem) -> Iterator[Row]:
    chosen = system.options
    yield "ResumeProgram", chosen.resume_program, "Starts the machines of a host list."
    yield "SuspendProgram", chosen.suspend_program, "Ends the machines of a host list."
    yield "SuspendTime", str(system.idle_s), "Seconds of idleness: layout.idle_minutes."
    yield "ResumeTimeout", str(RESUME_S), "Seconds until a machine that did not start is DOWN."
    yield "SuspendTimeout", str(SUSPEND_S), "Seconds in which a machine ends."
    yield (
        "ResumeRate",
        "0",
        "No limit: nodes of one job start together (aws-parallelcluster-cookbook PR 642).",
    )
    yield "SuspendRate", "0", "No limit."
    yield "SlurmctldParameters", "cloud_reg_addrs", "Addresses of nodes come with their registration."
    always = [host_list(one.name, 1, one.always) for one in system.partitions if one.always]
    if always:
        yield (
            "SuspendExcNodes",
            ",".join(always),
            "layout.pools[].min_nodes run always; their owner starts them.",
        )


def node_settings(one: Partition) -> dict[str, str]:
    """Settings of a node line that do not depend on who starts the machine."""
    features = ",".join([one.machine_type.replace(".", "_"), one.purchase, one.purpose])
    return {
        "RealMemory": str(one.machine.memory_mib),
        "Features": features,
        "Weight": str(10 * (one.rank + 1)),
    }


def _nodes(system: SlurmSystem, one: Partition) -> Iterator[str]:
    found, chosen = one.machine, node_settings(one)
    gres = f" Gres=gpu:{found.gpu_type}:{found.gpus}" if found.gpus else ""
    about = "" if one.usd is None else f"; ${one.usd:.4f} a node-hour"
    yield f"# {one.name}: {one.machine_type}, {one.purchase}{about}. 95 % of the memory; lower weights first."
    size = f"CPUs={found.cpus} RealMemory={chosen['RealMemory']}{gres}"
    line = f"{size} Feature={chosen['Features']} Weight={chosen['Weight']}"
    # Slurm starts nodes of state CLOUD when a job needs them; the others are started by their owner.
    always = min(one.always, one.nodes) if system.options.powers else one.nodes
    if always:
        yield f"NodeName={host_list(one.name, 1, always)} {line} State=UNKNOWN"
    if always < one.nodes:
        yield f"NodeName={host_list(one.name, always + 1, one.nodes)} {line} State=CLOUD"


def partition_settings(system: SlurmSystem, one: Partition) -> dict[str, str]:
    """Settings of a partition line, without its nodes."""
    found = one.machine
    if found.gpus:
        quotas = [names.quota_qos(of.team, one.name) for of in system.accounts if one.name in of.quotas]
        allowed = ",".join([*quotas, names.BORROW])
    else:
        allowed = names.CPU_QOS
    usual, most = ("02:00:00", "12:00:00") if one.purpose == "interactive" else ("04:00:00", "14-0")
    chosen = {
        "Default": "YES" if one is system.default else "NO",
        "DefaultTime": usual,
        "MaxTime": most,
        "AllowQos": allowed,
    }
    if found.gpus:
        # Without a default, a job of one GPU takes all memory of a node, or one core.
        chosen["DefCpuPerGPU"] = str(found.cpus // found.gpus)
        chosen["DefMemPerGPU"] = str(found.memory_mib // found.gpus)
    # Memory is in MiB without a suffix.
    weights = ",".join(
        f"{key}={value:.6g}{'G' if key == 'Mem' else ''}" for key, value in billing_weights(one).items()
    )
    return chosen | {"State": "UP"} | ({"TRESBillingWeights": weights} if weights else {})


def _partition(system: SlurmSystem, one: Partition) -> Iterator[str]:
    yield f"# {one.name}: QOS are quotas; a limit of time lets budgets and backfill count a job."
    chosen = " ".join(f"{key}={value}" for key, value in partition_settings(system, one).items())
    yield f"PartitionName={one.name} Nodes={one.node_names} {chosen}"
