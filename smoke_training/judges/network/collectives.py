"""Judge of the collectives' speed (pure)."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.fabric import Collective, sweep_of
from smoke_training.evidence.links import NcclLog, Traffic
from smoke_training.evidence.world import World
from smoke_training.expected import lookup
from smoke_training.expected.lookup import LIKE, FigureQuery
from smoke_training.expected.reference import (
    EFFICIENCY,
    CollectiveReference,
    RunSetting,
    accepted_instead,
    expects_switch,
    reference,
    ring_instead,
    setting_of,
)
from smoke_training.expected.tables import Signature, shipped
from smoke_training.formulae.alphabeta import named_fit
from smoke_training.formulae.bandwidth import ALL_REDUCE, algbw_gb_s, busbw_gb_s
from smoke_training.formulae.bounds import wire_rates
from smoke_training.judges.common import finite
from smoke_training.judges.run.baseline import acceptance
from smoke_training.model import Cause, Check, Culprit, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics.baseline import Acceptance
from smoke_training.statistics.estimators import ACQUIT_ALPHA, decision_alpha, median_absolute_deviation
from smoke_training.statistics.medians import LOOKS, median_interval, warm_up
from smoke_training.statistics.noise import STEAL_LIMIT

BELOW_SHARE = 0.9  # of the samples: noise only slows, so a slow wire has no fast ones
NOISY_QUEUE = 0.2  # of the timed seconds: such a rank waits for a CPU, not for a wire
RING_SETTINGS = "NCCL_NVLS_ENABLE, NCCL_ALGO, the fabric manager"
LIKE_RING = "a ring in place of NVLS or a tree (NCCL_ALGO=Ring, or NVLS lost), or a tree that lost adapters"
UNRECORDED = "Validate these machines (trainstack smoke render): that result can be accepted, this cannot."
# Settings by which a user may have chosen another algorithm than NCCL would.
CHOICES = {"NCCL_ALGO", "NCCL_NVLS_ENABLE", "NCCL_TUNER_PLUGIN", "NCCL_TUNER_CONFIG_FILE", "NCCL_CONF_FILE"}
TUNED = {"NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS"}  # more channels than NCCL's default
ABOVE_CEILING = 1.25  # of a declared wire's bound: the bytes cannot have crossed it


def open_size(plan: Plan, setting: RunSetting, sweep: Collective) -> int | None:
    """Return the size of which more samples could still change the verdict; None if none could."""
    found = _finding(plan, setting, sweep)
    # Without a reference there is nothing to decide. Under noise there is no fault to prove, and the noise
    # does not decrease with sampling.
    open_ = found.speed is Verdict.INCONCLUSIVE and found.against.expected.floor is not None
    return found.against.size if open_ and not found.noisy else None


def bandwidth(name: str, plan: Plan, found: Evidence) -> Check:
    """Bus bandwidth of a collective at its judged size."""
    sweep, cluster = sweep_of(found, name), found.need(World)
    if sweep is None:
        raise UndeliveredError(f"sweep of {name}")
    if sweep.skipped is not None:
        return Check.skipped(sweep.skipped)
    setting = setting_of([facts.node for facts in cluster.ranks], cluster.ranks[0].backend)
    traffic = found.of(Traffic)
    names = {name for node in traffic.nodes for name in node.environment} if traffic else set()
    own, setting = traffic is not None and not CHOICES & names, replace(setting, tuned=bool(TUNED & names))
    seen = _finding(plan, setting, sweep, found.all_of(NcclLog), acceptance(plan, found), own_choice=own)
    status, interval = seen.status, median_interval(seen.rates)
    bounds = finite(interval.low, interval.high)
    # Where the ranks waited for CPUs, gloo's rate is no evidence about the declared wire; links
    # and rails are judged by themselves, with less to compute. Accelerators move their bytes without CPUs.
    starved = status is Verdict.INCONCLUSIVE and seen.against.declared and seen.noisy and not seen.above
    line, floor = seen.against.fail_below, seen.against.expected.floor
    # Where the all-reduce has a reference, it judges the fabric; where it has none, the run is undecided.
    aside = floor is None and (name != ALL_REDUCE or status is Verdict.SKIPPED)
    return Check(
        status=status,
        required=not (starved or aside),
        measured=Measured(
            value=seen.centre,
            unit="GB/s",
            n=len(seen.rates),
            estimator="median of busbw, time = maximum over ranks, warm-up dropped",
            ci=bounds,
            spread=median_absolute_deviation(seen.rates),
            reason=None if bounds else "too few samples for an interval",
            detail=_detail(seen),
        ),
        expected=seen.against.expected,
        zone=None if line is None or floor is None else (line, floor),
        noise={"queue_share": sweep.queue_share, "steal_share": sweep.steal_share},
        culprits=_culprits(seen) if status is Verdict.FAIL else (),
        message=_message(seen),
        next_action=None if status in (Verdict.PASS, Verdict.SKIPPED) else _next_action(seen, status),
    )


def of_means(plan: Plan, setting: RunSetting, name: str, size: int, seconds: Sequence[float]) -> Check:
    """Judge one size that another program timed: each of `seconds` is a mean over its iterations.

    A few means have no distribution to estimate from: the slowest and the fastest bound the rate.
    """
    sweep = Collective(name=name, sizes=(size,), seconds=(tuple(seconds),))
    seen = _finding(plan, replace(setting, tuned=None), sweep)
    low, high = min(seen.rates), max(seen.rates)
    status = seen.against.compared(low, high)
    floor, line = seen.against.expected.floor, seen.against.fail_below
    return Check(
        status=status,
        measured=Measured(
            value=seen.centre,
            unit="GB/s",
            n=len(seen.rates),
            estimator="median of means",
            reason=f"{low:.1f} .. {high:.1f}: lowest and highest mean, no interval",
            spread=high - low,
        ),
        expected=seen.against.expected,
        zone=None if line is None or floor is None else (line, floor),
        culprits=(_culprits(seen) or (_fabric(seen),)) if status is Verdict.FAIL else (),
        message=_message(seen),
        next_action=None if status is Verdict.PASS else _next_action(seen, status, UNRECORDED),
    )


@dataclass(frozen=True)
class _Finding:
    """The bus bandwidths of the judged size, GB/s without warm-up, and their reference."""

    plan: Plan
    setting: RunSetting
    sweep: Collective
    against: CollectiveReference
    rates: tuple[float, ...]
    logs: Sequence[NcclLog] = ()
    own_choice: bool = False  # no setting of the nodes chose an algorithm in place of NCCL

    @property
    def centre(self) -> float:
        return statistics.median(self.rates)

    @property
    def noisy(self) -> bool:
        """True if the ranks waited for CPUs; never on accelerators, which move bytes without CPUs."""
        if self.setting.backend == "nccl":
            return False
        return (self.sweep.queue_share or 0) > NOISY_QUEUE or (self.sweep.steal_share or 0) > STEAL_LIMIT

    @property
    def above(self) -> bool:
        """True if the samples exceed the rate of the declared wire."""
        if not self.against.declared or self.against.ceiling is None:
            return False
        return median_interval(self.rates, ACQUIT_ALPHA).low > ABOVE_CEILING * self.against.ceiling

    @property
    def choice(self) -> str:
        """NCCL's algorithm for the judged size, empty where it named none."""
        return self.sweep.algorithms.get(str(self.against.size), "").partition("/")[0]

    @property
    def lost_switch(self) -> str | None:
        """The reason why NVLS is not in use where a healthy run has it; None where it is, or unknown."""
        if not expects_switch(shipped(), self.plan, self.setting, self.sweep.name):
            return None
        if self.choice:
            lost = not self.choice.startswith(("nvls", "collnet"))
            return f"NCCL chose {self.choice}, not NVLS, for {self.against.size} bytes" if lost else None
        lost = bool(self.logs) and not any(log.nvls for log in self.logs)
        return "NCCL's log names no NVLS communicator" if lost else None

    @property
    def like_ring(self) -> bool:
        """True if a ring in place of NVLS or a tree explains the rate, and NCCL named no algorithm."""
        if self.choice or self.centre >= (self.against.expected.floor or 0.0):
            return False
        ring = ring_instead(shipped(), self.plan, self.setting, self.sweep.name, None)
        return ring is not None and EFFICIENCY <= self.centre / ring.value <= 1 + LIKE

    @property
    def status(self) -> Verdict:
        """The verdict by speed; lost NVLS is no PASS, and FAIL below a figure if no setting asks."""
        expected, speed = self.against.expected, self.speed
        if self.lost_switch is None or speed is Verdict.FAIL:
            return speed
        slower = median_interval(self.rates, decision_alpha(looks=LOOKS)).high < (expected.floor or 0.0)
        proven = slower and self.own_choice and expected.kind == "published"
        return Verdict.FAIL if proven else Verdict.INCONCLUSIVE

    @property
    def speed(self) -> Verdict:
        """PASS: the median reaches the floor; FAIL: it and 9 samples of 10 lie below the fault's line.

        A FAIL rests on a share of the family-wise error, a PASS on the level of acquittals. A busy machine
        slows a collective and never speeds it up: under noise a pass is possible but no fault. Without a
        reference there is no pass: undecided on accelerators; only reported on gloo.
        """
        if self.against.expected.floor is None:
            return Verdict.INCONCLUSIVE if self.setting.backend == "nccl" else Verdict.SKIPPED
        if self.above:
            return Verdict.INCONCLUSIVE
        low = median_interval(self.rates, ACQUIT_ALPHA).low
        found = self.against.compared(low, median_interval(self.rates, decision_alpha(looks=LOOKS)).high)
        below = sum(rate < (self.against.fail_below or 0.0) for rate in self.rates)
        unproven = self.noisy or below < BELOW_SHARE * len(self.rates)
        return Verdict.INCONCLUSIVE if found is Verdict.FAIL and unproven else found

    @property
    def question(self) -> FigureQuery | None:
        """The query to the tables; None where they have nothing for this setting."""
        if self.setting.shape is None or self.setting.backend != "nccl":
            return None
        return FigureQuery(
            instance_type=self.plan.instance_type,
            fabric=self.plan.fabric,
            collective=self.sweep.name,
            shape=self.setting.shape,
            size_bytes=self.against.size,
        )

    @property
    def fault(self) -> Signature | None:
        """The known fault with such a figure."""
        return None if self.question is None else lookup.signature_of(shipped(), self.question, self.centre)


def _finding(
    plan: Plan,
    setting: RunSetting,
    sweep: Collective,
    logs: Sequence[NcclLog] = (),
    accepted: Acceptance | None = None,
    *,
    own_choice: bool = False,
) -> _Finding:
    """Raise ValueError for one rank, whose collectives have no bus bandwidth."""
    algorithms = {int(size): choice.partition("/")[0] for size, choice in sweep.algorithms.items()}
    # Releases before 2.20 name no algorithm; where switches take part, they reduce what is large.
    if not algorithms and sweep.name == ALL_REDUCE and logs and all(log.collnet for log in logs):
        algorithms = dict.fromkeys(sweep.sizes, "collnet")
    # NCCL takes NVLS by itself where it is faster, so a ring's rate is no healthy one.
    itself = own_choice and not algorithms and bool(logs) and all(log.nvls for log in logs)
    if itself and expects_switch(shipped(), plan, setting, sweep.name):
        algorithms = dict.fromkeys(sweep.sizes, "nvls")
    against = reference(shipped(), plan, setting, (sweep.name, sweep.sizes), algorithms)
    against = accepted_instead(against, sweep.name, accepted)
    seconds = sweep.seconds[sweep.sizes.index(against.size)]
    rates = [busbw_gb_s(against.size, t, setting.ranks, sweep.name) for t in seconds[warm_up(seconds) :]]
    known = tuple(rate for rate in rates if rate is not None)
    if not known:
        raise ValueError(f"{sweep.name} over {setting.ranks} ranks has no bus bandwidth")
    return _Finding(plan, setting, sweep, against, known, logs, own_choice)


def _message(seen: _Finding) -> str:
    against, expected, sweep = seen.against, seen.against.expected, seen.sweep
    name = sweep.name.replace("_", "-")
    text = f"{name} of {against.size} bytes: {seen.centre:.3f} GB/s busbw over {seen.setting.ranks} ranks"
    if expected.value is None:
        return f"{text}; no_reference, not judged: {expected.reason}"
    text += f" (expected >= {expected.floor:.3f}, {expected.kind}: {expected.source})"
    if expected.reason:
        text += f"; {expected.reason}"
    if seen.above:
        text += f"; faster than the declared wire's bound of {against.ceiling:.3f} GB/s"
    if seen.noisy and seen.centre < (expected.floor or 0.0):
        text += f"; the ranks waited for CPUs {sweep.queue_share or 0.0:.2f} s a second: no fault is proven"
    if seen.lost_switch:
        text += f"; {seen.lost_switch}"
    if seen.centre < (expected.floor or 0.0) and seen.fault:
        return f"{text}; reads like {seen.fault.meaning}"
    return f"{text}; reads like {LIKE_RING}" if seen.like_ring else text


def _next_action(seen: _Finding, status: Verdict, unrecorded: str | None = None) -> str:
    if seen.above:
        return "Correct the declared rate, or find the interface that carried the bytes (GLOO_SOCKET_IFNAME)."
    if seen.noisy:
        return "Run again on machines without other load: the ranks waited for CPUs."
    misconfigured = seen.fault.meaning if seen.fault and seen.fault.cause == Cause.MISCONFIGURED else None
    if why := misconfigured or seen.lost_switch:
        return f"Correct the configuration (also {RING_SETTINGS}): {why}."
    if seen.against.expected.kind == "unknown":
        accept = "trainstack smoke accept RESULT --because ..."
        own = f"If this cluster is as it should be, {accept}; or declare expected_busbw_gb_s in the plan."
        return unrecorded or own
    if seen.against.expected.kind == "derived" or status is Verdict.INCONCLUSIVE:
        ring = (
            "Look up the algorithm (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,TUNING). If it is a ring, check "
            f"{RING_SETTINGS}; if not, all adapters."
        )
        other = "Compare with an accepted run of this stack, or declare expected_busbw_gb_s in the plan."
        return ring if seen.like_ring else unrecorded or other
    return "Check that the fabric's plugin is in use (NCCL_DEBUG=INFO) and all interfaces are attached."


def _culprits(seen: _Finding) -> tuple[Culprit, ...]:
    """Accuse the stack of a known fault's figure; links, rails and transport accuse nodes."""
    share = seen.centre / (seen.against.expected.value or seen.centre)
    if (fault := seen.fault) is None:
        lost = seen.lost_switch
        return (Culprit("stack", "nvls", Cause.MISCONFIGURED, (lost,), score=share),) if lost else ()
    cause = Cause(fault.cause)
    name = "transport" if cause is Cause.TCP_FALLBACK else "fabric"
    text = f"{fault.meaning} measured {fault.value} GB/s ({fault.source.text})"
    return (Culprit("stack", name, cause, (text,), score=share),)


def _fabric(seen: _Finding) -> Culprit:
    """Accuse the fabric as a whole, where nothing but a rate is known."""
    value = seen.against.expected.value or seen.centre
    text = f"{seen.centre:.1f} of {value:.1f} GB/s at {seen.against.size} bytes"
    return Culprit("stack", "fabric", Cause.UNKNOWN, (text,), score=seen.centre / value)


def _detail(seen: _Finding) -> dict[str, object]:
    detail: dict[str, object] = {
        "collective": seen.sweep.name,
        "size_bytes": seen.against.size,
        "sweep": [_row(seen.sweep, size, seen.setting) for size in seen.sweep.sizes],
        "bounds": [
            {"algorithm": b.algorithm, "busbw_gb_s": b.value, "limit": b.limit, "complete": b.complete}
            for b in seen.against.bounds
        ],
        "cut": seen.sweep.cut,
    }
    rows = zip(seen.sweep.sizes, seen.sweep.seconds, strict=True)
    detail |= named_fit([(size, statistics.median(times[warm_up(times) :])) for size, times in rows])
    if seen.question is not None:  # limits of published checks: reported, never used
        floor = lookup.floor_of(shipped(), seen.question)
        detail["liveness_floor"] = floor and {"busbw_gb_s": floor.value, "source": floor.source.text}
    return detail


def _row(sweep: Collective, size: int, setting: RunSetting) -> dict[str, object]:
    seconds = sweep.seconds[sweep.sizes.index(size)]
    kept = seconds[warm_up(seconds) :]
    centre = statistics.median(kept)
    rate = busbw_gb_s(size, centre, setting.ranks, sweep.name)
    wires = None if setting.shape is None or rate is None else wire_rates(rate, setting.shape)
    return {
        "size_bytes": size,
        "seconds": centre,
        "n": len(kept),
        "warm_up": len(seconds) - len(kept),
        "algbw_gb_s": algbw_gb_s(size, centre),
        "busbw_gb_s": rate,
        "wire_gb_s_per_rank": wires,
        "algorithm": sweep.algorithms.get(str(size)),
    }
