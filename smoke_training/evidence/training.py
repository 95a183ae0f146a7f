"""Records of the training step: times, state of the machines, correctness of the numbers."""

from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind

Rows = tuple[tuple[float, ...], ...]
"""Seconds, [rank][iteration]."""


@dataclass(frozen=True, kw_only=True)
class MachineWindow:
    """State of one rank's machine during a measurement; None where the machine does not report it."""

    steal_share: float | None = None  # of all CPU time of the machine, taken by its hypervisor
    cpu_pressure: float | None = None  # share of the time in which some task waited for a CPU (PSI)
    throttled_periods: int | None = None  # times the rank's control group ran into its CPU quota
    throttled_seconds: float | None = None  # time it was throttled by that quota
    cpu_mhz: float | None = None  # mean of the looks
    gpu_mhz: float | None = None  # median of the looks
    clock_reasons: tuple[str, ...] = ()  # that limited the GPU's clock at most looks; empty without a GPU


@kind("fitness")
class Fitness(Record):
    """A fixed spin on every rank without anything to wait for: the remaining spread is the machine's."""

    spin: Rows
    spin_queue: Rows | None  # time spent runnable, waiting for a CPU
    windows: tuple[MachineWindow, ...]  # by rank


@kind("training")
class Training(Record):
    """Per-iteration seconds, [rank][iteration].

    `compute` without any collective, `step` with the gradient all-reduce; `*_cpu` is the thread's own CPU
    time, `*_queue` the time it waited runnable for a CPU (None where the kernel does not report it). `spin`
    is a fixed amount of work between the steps. `windows`, by rank, cover the compute-only iterations alone
    for the quota and the whole sampling for the rest. `backend` carried the gradients. `buckets` are the
    bytes that are reduced at once, in order; empty in records before they were kept.
    """

    compute: Rows
    compute_cpu: Rows
    compute_queue: Rows | None
    step: Rows
    alone: tuple[float, ...]
    spin: Rows
    spin_queue: Rows | None
    windows: tuple[MachineWindow, ...]
    parameters: int
    gradient_bytes: int
    tokens_per_step: int
    backend: str = "gloo"
    buckets: tuple[int, ...] = ()


@kind("decomposition")
class Decomposition(Record):
    """Breakdown of the seconds of real training steps, [rank][step]; `total` is measured by itself.

    `bare` is the gradient exchange without overlap, the maximum over ranks. FLOPs per token are
    those of the model, `device` its accelerator, `dtype` that of its matrix products.
    """

    data: Rows
    compute: Rows
    exposed: Rows
    checkpoint: Rows
    other: Rows
    total: Rows
    bare: tuple[float, ...]
    tokens_per_step: int
    flops_per_token: float
    dtype: str
    device: str


@dataclass(frozen=True, kw_only=True)
class NonFinite:
    """One parameter whose own gradient, before any reduction, was not finite on one rank."""

    rank: int
    step: int  # backward passes of the phase before this one
    parameter: str
    nan: int  # elements
    infinite: int


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """One rank's passes over work that it did several times, by the bits of its own gradients.

    `odd` of them gave other bits than most passes of the same work, the `first` at this step.
    """

    rank: int
    passes: int
    odd: int
    first: int | None


@kind("numerics")
class Numerics(Record):
    """Gradients of one phase: finite before the reduction, equal on all ranks after it.

    `repeats`, by rank, are of gradients before the reduction; none where no work is repeated or bits may
    differ by chance. `checksums` are hexadecimal, [rank][sample]; `steps` says which step each sample is of;
    `differing` names the parameters that differ at the first step at which ranks do.
    """

    phase: str
    passes: int  # backward passes checked on every rank
    nonfinite: tuple[NonFinite, ...]
    steps: tuple[int, ...]
    checksums: tuple[tuple[str, ...], ...]
    differing: tuple[str, ...]
    repeats: tuple[Repeats, ...] = ()


@kind("sharded")
class Sharded(Record):
    """The step with sharded parameters (FSDP2), the same step without any collective, and the losses.

    `tokens` are those of one rank and step; the default is the CPU value of records without the field.
    """

    dtype: str
    losses: tuple[float, ...]  # mean over ranks, per step
    replicated: tuple[float, ...]  # the same steps with replicated parameters (DDP)
    step: Rows
    plain: Rows
    shard_bytes: tuple[int, ...]  # parameter bytes that each rank keeps
    parameter_bytes: int
    tokens: int = 2048


@kind("parity")
class Parity(Record):
    """Loss of every step on N ranks and on one rank with the same global batch, of `tokens` for each rank."""

    dtype: str
    many: tuple[float, ...]
    one: tuple[float, ...]
    tokens: int = 64
