"""Judge evidence: checks and one verdict (pure, fails closed).

A required check without readable evidence is ERROR, never ignored. FAIL takes precedence over ERROR,
because a measured fault matters more than a missing later measurement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.world import LauncherPreflight, StoppedEarly, World
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.judges.network import collectives, links, loss, payload, rails, transport
from smoke_training.judges.run import baseline, ending, liveness, world
from smoke_training.judges.state import checkpoint, resume
from smoke_training.judges.storage import loader
from smoke_training.judges.storage import throughput as storage
from smoke_training.judges.training import (
    burn,
    clocks,
    decomposition,
    devices,
    fitness,
    gpus,
    numerics,
    quota,
    repeatable,
)
from smoke_training.judges.training import step as judged
from smoke_training.model import Check, Judgement, Verdict
from smoke_training.nccl.transport import must_be_proven
from smoke_training.plan import Plan
from smoke_training.reader import UNFIT

Judge = Callable[[Plan, Evidence], Check]


@dataclass(frozen=True)
class CheckRule:
    """One check: its id, the phase that delivers its evidence (None: the launcher), and its judge.

    A check that is not required is reported and never gates.
    """

    id: str
    phase: str | None
    judge: Judge
    required: bool = True
    needs_peers: bool = False

    def without(self, status: Verdict, why: str) -> Check:
        """Return the check without anything to judge."""
        return Check(id=self.id, status=status, required=self.required, message=why)


_BANDWIDTHS = (
    CheckRule(f"collective.{name}", "collectives", partial(collectives.bandwidth, name), needs_peers=True)
    for name in COLLECTIVES
)

# In the order of reading: the first that fails gives the headline.
RULES: tuple[CheckRule, ...] = (
    CheckRule("preflight.devices", None, world.devices),
    CheckRule("preflight.nodes", None, world.nodes),
    CheckRule("preflight.memory_lock", None, world.memory_lock),
    CheckRule("run.liveness", None, liveness.alive),
    CheckRule("preflight.world", "world", world.joined),
    CheckRule("host.fitness", "fitness", fitness.fitness, required=False),
    CheckRule("device.errors", None, devices.errors),
    CheckRule("gpu.state", "gpus", gpus.state),
    CheckRule("gpu.bits", "gpus", gpus.bits),
    CheckRule("gpu.compute", "gpus", gpus.compute),
    CheckRule("burn.bits", "burn", burn.bits),
    CheckRule("burn.rates", "burn", burn.rates),
    CheckRule("collective.payload", "collectives", payload.payload),
    CheckRule("fabric.transport", "collectives", transport.transport, needs_peers=True),
    CheckRule("fabric.rails", "rails", rails.rails, needs_peers=True),
    CheckRule("fabric.links", "pairs", links.links, needs_peers=True),
    CheckRule("fabric.loss", "pairs", loss.loss, needs_peers=True),
    CheckRule("numerics.finite", "training", numerics.finite, needs_peers=True),
    CheckRule("numerics.repeatable", "training", repeatable.repeatable, needs_peers=True),
    CheckRule("numerics.gradients", "training", numerics.gradients, needs_peers=True),
    CheckRule("training.scaling_efficiency", "training", judged.scaling_efficiency, needs_peers=True),
    CheckRule("training.straggler", "training", judged.straggler, needs_peers=True),
    CheckRule("host.quota", "training", quota.quota, needs_peers=True),
    CheckRule("host.clock", "training", clocks.clocks, needs_peers=True),
    # Its parts are cut out of one clock: their sum proves the clock, not the stack.
    CheckRule(
        "training.decomposition", "training", decomposition.decomposition, required=False, needs_peers=True
    ),
    CheckRule("training.overlap", "training", decomposition.overlap, required=False, needs_peers=True),
    CheckRule("training.weak_scaling", "training", judged.weak_scaling, required=False, needs_peers=True),
    CheckRule("training.mfu", "training", decomposition.mfu, required=False, needs_peers=True),
    CheckRule("training.sharded", "sharded", numerics.sharded, needs_peers=True),
    CheckRule("training.loss_parity", "parity", numerics.loss_parity),
    *_BANDWIDTHS,
    CheckRule("storage.write", "storage", storage.write),
    CheckRule("storage.read", "storage", storage.read),
    CheckRule("loader.utilisation", "loader", loader.utilisation),
    CheckRule("checkpoint.commit", "checkpoint", checkpoint.commit),
    CheckRule("checkpoint.integrity", "resume", checkpoint.integrity),
    CheckRule("checkpoint.torn_refused", "resume", checkpoint.torn_refused),
    CheckRule("checkpoint.advice", "checkpoint", checkpoint.advice, required=False),
    CheckRule("resume.equality", "resume", resume.resume_equality),
    CheckRule("resume.recovery", "resume", resume.recovery),
)


def judge(plan: Plan, found: Evidence) -> Judgement:
    """Return all checks of the phases that the plan runs, and the overall verdict."""
    checks = _wanted(plan, list(_judged(plan, found)))
    completed = ending.completed(found)
    if completed is not None:
        checks.insert(0, completed)  # the reason of what is missing below
    made_way = ending.preempted(plan, found)
    if made_way is not None:
        checks = [ending.excused(check, made_way) for check in checks]
    verdict = overall(checks)
    # Last, because it compares the figures of all others; it never changes the verdict.
    checks.append(baseline.regression(plan, found, checks, verdict))
    return Judgement(verdict=verdict, checks=tuple(checks), notes=tuple(_notes(plan, found)))


def _wanted(plan: Plan, checks: list[Check]) -> list[Check]:
    """The checks; where none of the phases that the plan names could be judged, theirs are required."""
    named, phases = set(plan.phases or ()) - {"world"}, {rule.id: rule.phase for rule in RULES}
    chosen = [check for check in checks if phases[check.id] in named]
    if any(check.status is not Verdict.SKIPPED for check in chosen):
        return checks
    return [replace(check, required=True) if check in chosen else check for check in checks]


def overall(checks: list[Check]) -> Verdict:
    """Worst status of the required checks: FAIL, ERROR, INCONCLUSIVE, SKIPPED; no check is ERROR."""
    statuses = {check.status for check in checks if check.required}
    order = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.SKIPPED, Verdict.PASS)
    return next((status for status in order if status in statuses), Verdict.ERROR)


def _notes(plan: Plan, found: Evidence) -> Iterator[str]:
    preflight = found.of(LauncherPreflight)
    cuda = preflight is not None and preflight.device == "cuda"
    if cuda and must_be_proven(plan.fabric):
        yield f"NCCL over {plan.fabric} is untested on hardware of our own."
    if preflight is not None and not cuda and plan.gpus_per_node:
        gpus = f"the {plan.gpus_per_node} GPUs per node were not validated"
        yield f"Ran on CPU by SMOKE_DEVICE=cpu, at {plan.depth} depth: {gpus}."
    if (accepted := baseline.acceptance(plan, found)) is not None:
        yield f"Held against {accepted.text}."
    if plan.partial:
        yield f"A partial run ({', '.join(plan.chosen_phases)}): it does not validate a stack."


def _judged(plan: Plan, found: Evidence) -> Iterator[Check]:
    preflight, world = found.of(LauncherPreflight), found.of(World)
    ranks = world.wanted if world is not None else plan.nodes * (preflight.ranks if preflight else 1)
    stopped = found.of(StoppedEarly)
    reason = stopped.reason if stopped else ending.stopped(found)
    why_not = f"Not run: {reason}." if reason else "no measurement was delivered"
    for rule in RULES:
        if rule.phase is not None and rule.phase not in plan.chosen_phases:
            continue
        if ranks < 2 and rule.needs_peers:
            yield rule.without(Verdict.SKIPPED, "One rank has no peers to scale with or to compare with.")
            continue
        try:
            check = rule.judge(plan, found)
            yield replace(check, id=rule.id, required=rule.required and check.required)
        except UndeliveredError:
            yield rule.without(Verdict.ERROR if stopped is None else Verdict.SKIPPED, why_not)
        except (*UNFIT, StopIteration) as error:
            why = f"the evidence cannot be judged: {type(error).__name__}: {error}"
            yield rule.without(Verdict.ERROR, why)
