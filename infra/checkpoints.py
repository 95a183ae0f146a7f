"""What the checkpoint policy of a spec comes to: how often, why so often, and how many there are (pure).

Times in seconds, sizes in GB (1e9 bytes), for one run that trains on the largest pool.
"""

from dataclasses import dataclass
from typing import Final

from infra.catalog.registry import CATALOGS
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.stack import StackSpec
from smoke_training.formulae import youngdaly

QUEUE_MTBF_S: Final = 86_400
"""How often the queue takes borrowed nodes back from one run: once a day. An assumption of 2026-11-25, until
a stack has its own history; hardware alone would allow hours between two checkpoints."""
USUAL_S: Final = 1800
"""R19 and common practice: every 15 to 30 minutes, where nothing better is known."""
TAKEN_BACK_S: Final = 900
"""The same where nodes may be taken back at any time, at the shorter end: no source gives how often, with a
date, for the types of the catalog."""
MOST_SHARE: Final = 0.1
"""No usual interval is so short that writing takes more than this share of the time."""
_MB_PER_GB: Final = 1000
_GIB_PER_TIB: Final = 1024
_DAY_S: Final = 86_400


@dataclass(frozen=True)
class CheckpointPlan:
    """The checkpoints of one run."""

    size_gb: float | None
    """GB of one; None without a model."""
    write_s: float | None
    """Seconds until the fast file system has one; None where its size or that file system is not known."""
    interval_s: int
    why: str
    """Where the interval comes from."""
    last: int
    """The latest that stay."""
    milestones: int
    """Those that stay besides, when a run has trained until the first ones expire."""
    written: int
    """All that a run writes until the first one expires, if it trains all the time."""

    @property
    def kept(self) -> int:
        """How many a run keeps: never more than it writes."""
        return min(self.last + self.milestones, self.written)

    @property
    def line(self) -> str:
        """One line for people."""
        often = f"every {self.interval_s / 60:g} minutes ({self.why}), {self.kept} kept"
        if self.size_gb is None:
            return f"{often}; data.checkpoints.model_params_b would give their price"
        return f"{often} of {self.size_gb:,.0f} GB"


def checkpoints(spec: StackSpec) -> CheckpointPlan:
    """The checkpoints of one run on the largest of the pools that people train on."""
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
    """The class: 0 the one in which objects begin, 1 the cool one, 2 the cold one."""
    until_day: int = 0
    """The day of their age at which they leave it; 0 where that is not said in days."""
    deleted: bool = False
    """Whether the run deleted them, and the bucket keeps them for `noncurrent_days`."""


def in_bucket(spec: StackSpec) -> list[StoredCheckpoints]:
    """What the bucket holds of one run, once the first of its checkpoints expires."""
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
        return wanted * 60, "as the spec says"
    if spec.layout.interruptible:
        return _usual(TAKEN_BACK_S, write_s, "nodes may be taken back, and nobody says how often")
    gpus = max((_gpus(spec, pool) for pool in spec.layout.training_pools), default=0)
    if write_s is None or gpus == 0:
        return _usual(USUAL_S, write_s, "the usual: it is not known how long one takes to write")
    hardware = 1 / youngdaly.prior_mtbf_s(gpus)
    mtbf = 1 / (hardware + 1 / QUEUE_MTBF_S)
    advice = youngdaly.advise(stall_s=write_s, commit_s=write_s, mtbf_s=mtbf, restart_s=0)
    minutes = max(1, round(advice.interval_s / 60))
    why = (
        f"Young/Daly: {write_s:,.0f} s to write, an interruption every {mtbf / 3600:.1f} h "
        f"on {gpus} GPUs and by the queue"
    )
    return minutes * 60, why


def _usual(seconds: int, write_s: float | None, why: str) -> tuple[int, str]:
    least = 0 if write_s is None else write_s / MOST_SHARE
    if least <= seconds:
        return seconds, why
    return -int(-least // 60) * 60, f"{why}; one takes {write_s:,.0f} s to write, a tenth of this"


def _write_s(spec: StackSpec) -> float | None:
    size, shared = spec.data.checkpoints.size_gb, spec.data.shared_fs
    if size is None or shared is None:
        return None
    mb_per_s = shared.capacity_gib / _GIB_PER_TIB * shared.throughput_mb_s_per_tib
    return size * _MB_PER_GB / mb_per_s


def _gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """GPUs of a pool at its largest; 0 for machines without any."""
    return CATALOGS[spec.cloud].accelerators_in(pool.machine) * pool.max_nodes
