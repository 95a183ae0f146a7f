"""The only place that decides: evidence in, checks and one verdict out (pure, fails closed).

A required check whose evidence is missing or unreadable is ERROR, never overlooked. FAIL wins over ERROR,
because a measured fault is worth more to a reader than what could not be measured after it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from smoke_training.evidence import Evidence, Training
from smoke_training.judges import fabric, state
from smoke_training.judges import training as judged
from smoke_training.judges.common import PLAN
from smoke_training.model import Check, Expected, Judgement, Measured, Verdict
from smoke_training.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the launcher saw before any rank started."""

    device: str  # "cpu" or "cuda"
    devices_found: int
    device_forced: bool  # the environment asked for CPU although the plan names accelerators
    ranks: int


def training_decided(training: Training, plan: Plan) -> bool:
    """Whether more iterations could still change the verdict of the training checks."""
    return all(status is not Verdict.INCONCLUSIVE for status in _training_statuses(training, plan))


def training_failed(training: Training, plan: Plan) -> bool:
    """Whether the training checks already fail, so that going on would only cost time."""
    return Verdict.FAIL in _training_statuses(training, plan)


def judge(plan: Plan, preflight: Preflight, found: Evidence, ended: str | None = None) -> Judgement:
    """All checks and the overall verdict. `ended` says why the run stopped before its end, if it did."""
    checks = [devices(plan, preflight), *_judged(plan, plan.nodes * preflight.ranks, found)]
    completed = _completed(found, ended)
    if completed is not None:
        checks.append(completed)
    notes = []
    if preflight.device == "cuda":
        notes.append("The GPU path (nccl, CUDA events) is untested on hardware.")
    elif plan.gpus_per_node:
        notes.append(
            f"Ran on CPU by SMOKE_DEVICE=cpu: the {plan.gpus_per_node} GPUs per node were not validated."
        )
    return Judgement(verdict=overall(checks), checks=tuple(checks), notes=tuple(notes))


def overall(checks: list[Check]) -> Verdict:
    """Worst status of the required checks: FAIL, ERROR, INCONCLUSIVE, SKIPPED; no check is ERROR."""
    statuses = {check.status for check in checks if check.required}
    for status in (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.SKIPPED, Verdict.PASS):
        if status in statuses:
            return status
    return Verdict.ERROR


def _training_statuses(training: Training, plan: Plan) -> tuple[Verdict, Verdict]:
    return judged.efficiency_status(plan, training), judged.straggler_status(plan, training)


# In the order of reading: the first that fails gives the headline. The flag says whether the check is
# required.
_JUDGES: tuple[tuple[str, bool, Callable[[Plan, Evidence], Check | None]], ...] = (
    ("preflight.world", True, fabric.world),
    ("collective.payload", True, fabric.payload),
    ("training.scaling_efficiency", True, judged.scaling_efficiency),
    ("training.straggler", True, judged.straggler),
    ("training.weak_scaling", False, judged.weak_scaling),
    ("training.loss_parity", True, state.loss_parity),
    ("collective.all_reduce", True, fabric.all_reduce),
    ("checkpoint.commit", False, state.checkpoint_commit),
    ("checkpoint.torn_refused", True, state.torn_refused),
    ("resume.equality", True, state.resume_equality),
    ("resume.recovery", True, state.recovery),
)
_NEED_PEERS = (
    "training.scaling_efficiency",
    "training.straggler",
    "training.weak_scaling",
    "collective.all_reduce",
)


def _judged(plan: Plan, ranks: int, found: Evidence) -> Iterator[Check]:
    for name, required, judge_one in _JUDGES:
        if ranks < 2 and name in _NEED_PEERS:
            yield _skipped(name, required, "One rank has no peers to scale with or to compare with.")
            continue
        try:
            check = judge_one(plan, found)
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, StopIteration) as error:
            text = f"the evidence cannot be judged: {type(error).__name__}: {error}"
            yield Check(id=name, status=Verdict.ERROR, required=required, message=text)
            continue
        if check is not None:
            yield check
        elif found.stopped_early is not None:
            yield _skipped(name, required, f"Not run: {found.stopped_early}.")
        else:
            yield Check(
                id=name, status=Verdict.ERROR, required=required, message="no measurement was delivered"
            )


def _skipped(name: str, required: bool, why: str) -> Check:
    return Check(id=name, status=Verdict.SKIPPED, required=required, message=why)


def devices(plan: Plan, preflight: Preflight) -> Check:
    """As many GPUs as planned, unless CPU was asked for in so many words."""
    wanted = plan.gpus_per_node
    excused = preflight.device == "cpu" and (wanted == 0 or preflight.device_forced)
    good = excused or preflight.devices_found >= wanted
    return Check(
        id="preflight.devices",
        status=Verdict.PASS if good else Verdict.FAIL,
        required=True,
        measured=Measured(value=float(preflight.devices_found), unit="GPUs", n=1, estimator="count"),
        expected=Expected(value=float(wanted), kind="declared", source=PLAN),
        message=f"{preflight.devices_found} GPUs are visible on this node, the plan has {wanted}",
        next_action=None
        if good
        else "Check the device plugin and the pod's nvidia.com/gpu request; SMOKE_DEVICE=cpu goes without.",
    )


def _completed(found: Evidence, ended: str | None) -> Check | None:
    """An ERROR check when the run did not reach its end or left something unreadable."""
    reasons = list(found.unreadable)
    reasons += [f"rank {item.rank} broke in phase {item.phase}: {item.message}" for item in found.failures]
    if not found.finished:
        reasons.append(ended or "the ranks ended before they had delivered everything")
    if not reasons:
        return None
    return Check(
        id="run.completed",
        status=Verdict.ERROR,
        required=True,
        message="; ".join(reasons)[:2000],
        next_action="Read torchrun.log in the node's scratch folder.",
    )
