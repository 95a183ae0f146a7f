"""Records of checkpoints, the interruption and the recovery."""

from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind


@kind("checkpoint")
class Checkpoint(Record):
    """Asynchronous checkpoints of sharded training; seconds per checkpoint, the maximum over ranks."""

    name: str  # of the storage target
    path: str
    ranks: int
    bytes: int  # of one checkpoint, all ranks together
    stall_s: tuple[float, ...]  # training stood still until the state was staged
    commit_s: tuple[float, ...]  # until `.result()`: all files and the metadata durable, the stall included
    mark_s: tuple[float, ...]  # from there until the mark with the files' SHA-256 was durable
    restore_s: float  # read, verified and in place again
    restore_resident_share: float | None  # of the files that were in this machine's page cache before
    entries: int  # of the restored state, all ranks together
    different: tuple[str, ...]  # entries that differ from the saved ones
    torn_offered: tuple[str, ...]
    torn_accepted: tuple[str, ...]
    left_behind: tuple[str, ...]  # temporary files


@kind("reference")
class ReferenceRun(Record):
    """The uninterrupted run: its loss per step and what a checkpoint cost."""

    losses: tuple[float, ...]
    checkpoint_seconds: tuple[float, ...]  # maximum over ranks, fsync included
    checkpoint_bytes: int  # sum over ranks
    entries: int


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One rank's part of a checkpoint that cannot be used, and why."""

    rank: int
    node: int
    step: int
    path: str
    fault: str


@kind("integrity")
class Integrity(Record):
    """The checkpoints that the restarted ranks found."""

    name: str  # of the storage target
    path: str
    resumed_from: int | None  # None: no step proves complete on all ranks
    committed: int | None  # the newest step that all ranks had once completed
    damaged: tuple[Damage, ...]  # parts of committed steps whose digest no longer matches
    unreadable: tuple[Damage, ...]  # parts that the operating system refuses to read


@dataclass(frozen=True, kw_only=True)
class RankResume:
    """One rank's comparison of the resumed state with the uninterrupted run at the same step.

    `different` are the first of `differing` entries that differ, `state_step` the step of the first of them.
    `gradient_step` is the first step at which this rank's own gradients, before any reduction, differ.
    """

    rank: int
    entries: int
    different: tuple[str, ...]
    differing: int = 0
    state_step: int | None = None
    gradient_step: int | None = None
    losses_compared: int
    losses_equal: int
    torn_offered: tuple[str, ...]
    torn_accepted: tuple[str, ...]


@kind("resume")
class Resume(Record):
    """The interruption and the recovery."""

    victim: int
    signal: int
    killed_at_step: int
    resumed_from: int
    every: int
    mttr_seconds: float
    ranks: tuple[RankResume, ...]
    committed: int | None = None  # the newest step committed before the kill; later than resumed_from if torn
    imports: bool = True  # whether mttr_seconds includes imports: ranks forked on CPUs have none
