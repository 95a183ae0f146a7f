"""Records of the run itself: devices, ranks, resource usage, end, and the baseline looked up."""

from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind


@kind("plan")
class PlanText(Record):
    """The text of the plan. First line of a samples file."""

    document: str


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """Host, device and versions of one rank.

    `placed` is its binding to CPUs near its GPU, or why it has none; `cpus` are those that it had before.
    """

    rank: int
    node: int
    host: str
    pid: int
    device: str
    backend: str
    python: str
    torch: str
    kernel: str
    cpus: int
    nccl: str | None
    gpu_memory_bytes: int | None
    placed: str | None = None


@kind("world")
class World(Record):
    """The process group as it joined; `wanted` is the world size of the plan."""

    wanted: int
    ranks: tuple[RankFacts, ...]


@dataclass(frozen=True, kw_only=True)
class RankUsage:
    """Resources of one rank's last process; a killed process takes its figures with it."""

    rank: int
    cpu_seconds: float
    max_rss_bytes: int
    gpu_memory_bytes: int | None


@kind("usage")
class ResourceUsage(Record):
    """Resources of all ranks at the end of one restart attempt."""

    ranks: tuple[RankUsage, ...]


@kind("system")
class System(Record):
    """Utilization of one node: samples `values[sample][name]`, at `at_ms` (milliseconds since the epoch).

    `names` are MLflow's own (`cpu_utilization_percentage`, ...). Unreadable values are None.
    """

    node: int
    names: tuple[str, ...]
    at_ms: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    gpu_reason: str | None


@kind("baseline")
class Lookup(Record):
    """The baseline looked up before judging, and its location; None with the reason.

    It is evidence, so that a run can be judged again from its samples.
    """

    document: Mapping[str, object] | None
    source: str
    reason: str | None


@kind("preflight")
class LauncherPreflight(Record):
    """Findings of the launcher before any rank started; `ranks` is their number on this node."""

    device: str  # "cpu" or "cuda"
    devices_found: int
    device_forced: bool  # the environment asked for CPU although the plan names accelerators
    ranks: int


@dataclass(frozen=True, kw_only=True)
class Nic:
    """One network interface; None where the kernel does not report it (`gbit_s` of a link that is down)."""

    name: str
    state: str | None  # operstate: up | down | unknown | ...
    gbit_s: float | None


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """Facts that the launcher of one node reports before any rank starts.

    `environment` has the variables that steer communication and threading, each with a digest of its
    value. `lockable_bytes` is the most memory a process may lock (None: no limit). `plan_sha256`
    is the digest of the plan it was given, `plan_nodes` and `plan_ranks_per_node` that plan's world size.
    """

    node: int
    host: str
    ranks: int
    device: str  # "cpu" or "cuda"
    device_forced: bool
    gpus: int
    driver: str | None  # of the GPUs; None without any
    cpus: int
    kernel: str
    python: str
    torch: str | None  # version as installed, without importing it; None when it is not
    code_sha256: str
    plan_sha256: str
    plan_nodes: int
    plan_ranks_per_node: int | None
    environment: Mapping[str, str]
    nics: tuple[Nic, ...]
    rdma: tuple[str, ...]  # RDMA devices
    lockable_bytes: int | None = None


@kind("nodes")
class JoinedNodes(Record):
    """Launchers that connected to node 0, and how long it waited for all of them to match.

    `joined` may hold nodes of another plan, of a number the plan does not have, or two of one number.
    `strangers` are connections without a valid handshake. `starting` are missing nodes whose name resolves:
    their pod has an address, and its image may still be pulled.
    """

    wanted: int
    joined: tuple[NodeFacts, ...]
    strangers: int
    waited_s: float
    patience_s: float
    starting: tuple[int, ...] = ()


@kind("unrecorded")
class Unrecorded(Record):
    """A file of the run's record that could not be written."""

    path: str
    reason: str


@kind("failure")
class RankFailure(Record):
    """An exception that ended a rank."""

    rank: int
    phase: str
    message: str


@kind("stopped_early")
class StoppedEarly(Record):
    """The ranks skipped the remaining phases, because the verdict was already certain."""

    reason: str


@kind("ended")
class EarlyEnd(Record):
    """Reason why the launcher ended the run before the ranks had finished."""

    reason: str


@kind("finished")
class Finished(Record):
    """All ranks reached the end of their last phase."""
