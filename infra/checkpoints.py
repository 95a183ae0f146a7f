"""Checkpoints by the policy of a spec: interval, its reason, and their number (pure).

Times in seconds, sizes in GB (1e9 bytes), for one run that trains on the largest pool.
"""

from dataclasses import dataclass
from typing import Final

from infra.catalog.registry import CATALOGS
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.stack import StackSpec
from smoke_training.formulae import youngdaly

QUEUE_MTBF_S: Final = 86_400
"""Mean time between preemptions of a run on borrowed nodes: one day. An assumption of 2026-11-25, until a
stack has its own history; by hardware failures alone, the interval could be hours."""
DEFAULT_S: Final = 1800
"""Default interval: common practice is every 15 to 30 minutes."""
INTERRUPTIBLE_S: Final = 900
"""Default interval on interruptible nodes: no dated source gives their interruption rate by machine type."""
MAX_SHARE: Final = 0.1
"""Maximum share of the time for writing, with a default interval."""
_MB_PER_GB: Final = 1000
_GIB_PER_TIB: Final = 1024
_DAY_S: Final = 86_400


@dataclass(frozen=True)
class CheckpointPlan:
    """The checkpoints of one run."""

    size_gb: float | None
    """GB of one; None without a model."""
    write_s: float | None
    """Seconds to write one to the shared file system; None without a model or file system."""
    interval_s: int
    why: str
    """Reason of the interval."""
    last: int
    """Latest checkpoints that are kept."""
    milestones: int
    """Further ones that are kept, when a run has trained until the first ones expire."""
    written: int
    """Number that a run writes until the first one expires, if it trains all the time."""

    @property
    def kept(self) -> int:
        """Number that a run keeps, at most what it writes."""
        return min(self.last + self.milestones, self.written)

    @property
    def line(self) -> str:
        """One line for output."""
        often = f"every {self.interval_s / 60:g} minutes ({self.why}), {self.kept} kept"
        if self.size_gb is None:
            return f"{often}; set data.checkpoints.model_params_b for their price"
        return f"{often} of {self.size_gb:,.0f} GB"


def checkpoints(spec: StackSpec) -> CheckpointPlan:
    """The checkpoints of one run on the largest training pool."""
    policy = spec.data.checkpoints
    write = _write_s(spec)
    interval, why = _interval(spec, write)
    days = policy.expire_days
    every = policy.keep_every_hours
    return CheckpointPlan(
        size_gb=policy.size_gb,
        write_s=write,
        interval_s=interval,
        why=why,
        last=policy.keep_last,
        milestones=days * 24 // every if every else 0,
        written=max(1, days * _DAY_S // interval),
    )


@dataclass(frozen=True)
class StoredCheckpoints:
    """Checkpoints of one run that trains all the time, in one storage class of the bucket."""

    count: int
    where: int = 0
    """Storage class: 0 the first one, 1 the cool one, 2 the cold one."""
    until_day: int = 0
    """Age in days at which they leave the class; 0: not by age."""
    deleted: bool = False
    """Whether the run deleted them; the bucket keeps them for `noncurrent_days`."""


def in_bucket(spec: StackSpec) -> list[StoredCheckpoints]:
    """Checkpoints of one run in the bucket, once the first of them expires."""
    policy, found = spec.data.checkpoints, checkpoints(spec)
    if policy.in_bucket == "kept":
        gone = spec.data.noncurrent_days * _DAY_S // found.interval_s
        return [StoredCheckpoints(found.kept), StoredCheckpoints(gone, deleted=True)]
    begins = (0, policy.cool_after_days, policy.cold_after_days)
    held = []
    for where, begin in enumerate(begins):
        if begin is not None:
            end = next((day for day in begins[where + 1 :] if day is not None), policy.expire_days)
            held.append(StoredCheckpoints((end - begin) * _DAY_S // found.interval_s, where, end))
    return held


def _interval(spec: StackSpec, write_s: float | None) -> tuple[int, str]:
    wanted = spec.data.checkpoints.interval_minutes
    if wanted is not None:
        return wanted * 60, "set in the spec"
    if spec.layout.interruptible:
        return _default(INTERRUPTIBLE_S, write_s, "interruptible nodes, unknown interruption rate")
    gpus = max((_gpus(spec, pool) for pool in spec.layout.training_pools), default=0)
    if write_s is None or gpus == 0:
        return _default(DEFAULT_S, write_s, "default: the time to write one is unknown")
    hardware = 1 / youngdaly.prior_mtbf_s(gpus)
    mtbf = 1 / (hardware + 1 / QUEUE_MTBF_S)
    advice = youngdaly.advise(stall_s=write_s, commit_s=write_s, mtbf_s=mtbf, restart_s=0)
    minutes = max(1, round(advice.interval_s / 60))
    why = (
        f"Young/Daly: {write_s:,.0f} s to write, an interruption every {mtbf / 3600:.1f} h "
        f"on {gpus} GPUs and by the queue"
    )
    return minutes * 60, why


def _default(seconds: int, write_s: float | None, why: str) -> tuple[int, str]:
    least = 0 if write_s is None else write_s / MAX_SHARE
    if least <= seconds:
        return seconds, why
    return -int(-least // 60) * 60, f"{why}; writing one takes {write_s:,.0f} s, a tenth of the interval"


def _write_s(spec: StackSpec) -> float | None:
    size, shared = spec.data.checkpoints.size_gb, spec.data.shared_fs
    if size is None or shared is None:
        return None
    mb_per_s = shared.capacity_gib / _GIB_PER_TIB * shared.throughput_mb_s_per_tib
    return size * _MB_PER_GB / mb_per_s


def _gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """GPUs of a pool at its largest; 0 for machines without any."""
    return CATALOGS[spec.cloud].accelerators_in(pool.machine) * pool.max_nodes
