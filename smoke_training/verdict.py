"""The only place that decides: evidence in, checks and one verdict out (pure, fails closed).

A required check whose evidence is missing or unreadable is ERROR, never overlooked. FAIL wins over ERROR,
because a measured fault is worth more to a reader than what could not be measured after it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.world import Preflight, StoppedEarly, World
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.judges.network import collectives, links, loss, payload, rails, transport
from smoke_training.judges.run import baseline, ending, liveness, world
from smoke_training.judges.state import checkpoint, resume
from smoke_training.judges.storage import loader
from smoke_training.judges.storage import throughput as storage
from smoke_training.judges.training import clocks, decomposition, fitness, gpus, numerics, quota, repeatable
from smoke_training.judges.training import step as judged
from smoke_training.model import Check, Judgement, Verdict
from smoke_training.nccl.transport import must_be_proven
from smoke_training.plan import Plan
from smoke_training.reader import UNFIT

Judge = Callable[[Plan, Evidence], Check]


@dataclass(frozen=True)
class Rule:
    """One check: its id, the phase that delivers its evidence (None: the launcher), and who judges it.

    A check that is not required is reported and never gates.
    """

    id: str
    phase: str | None
    judge: Judge
    required: bool = True
    needs_peers: bool = False

    def without(self, status: Verdict, why: str) -> Check:
        """The check where there is nothing to judge."""
        return Check(id=self.id, status=status, required=self.required, message=why)


_BANDWIDTHS = (
    Rule(f"collective.{name}", "collectives", partial(collectives.bandwidth, name), needs_peers=True)
    for name in COLLECTIVES
)

# In the order of reading: the first that fails gives the headline.
RULES: tuple[Rule, ...] = (
    Rule("preflight.devices", None, world.devices),
    Rule("preflight.nodes", None, world.nodes),
    Rule("preflight.memory_lock", None, world.memory_lock),
    Rule("run.liveness", None, liveness.alive),
    Rule("preflight.world", "world", world.joined),
    Rule("host.fitness", "fitness", fitness.fitness, required=False),
    Rule("gpu.state", "gpus", gpus.state),
    Rule("gpu.bits", "gpus", gpus.bits),
    Rule("gpu.compute", "gpus", gpus.compute),
    Rule("collective.payload", "collectives", payload.payload),
    Rule("fabric.transport", "collectives", transport.transport, needs_peers=True),
    Rule("fabric.rails", "rails", rails.rails, needs_peers=True),
    Rule("fabric.links", "pairs", links.links, needs_peers=True),
    Rule("fabric.loss", "pairs", loss.loss, needs_peers=True),
    Rule("numerics.finite", "training", numerics.finite, needs_peers=True),
    Rule("numerics.repeatable", "training", repeatable.repeatable, needs_peers=True),
    Rule("numerics.gradients", "training", numerics.gradients, needs_peers=True),
    Rule("training.scaling_efficiency", "training", judged.scaling_efficiency, needs_peers=True),
    Rule("training.straggler", "training", judged.straggler, needs_peers=True),
    Rule("host.quota", "training", quota.quota, needs_peers=True),
    Rule("host.clock", "training", clocks.clocks, needs_peers=True),
    # Its parts are cut out of one clock: that they sum to the step proves the clock, not the stack.
    Rule("training.decomposition", "training", decomposition.decomposition, required=False, needs_peers=True),
    Rule("training.overlap", "training", decomposition.overlap, required=False, needs_peers=True),
    Rule("training.weak_scaling", "training", judged.weak_scaling, required=False, needs_peers=True),
    Rule("training.mfu", "training", decomposition.mfu, required=False, needs_peers=True),
    Rule("training.sharded", "sharded", numerics.sharded, needs_peers=True),
    Rule("training.loss_parity", "parity", numerics.loss_parity),
    *_BANDWIDTHS,
    Rule("storage.write", "storage", storage.write),
    Rule("storage.read", "storage", storage.read),
    Rule("loader.utilisation", "loader", loader.utilisation),
    Rule("checkpoint.commit", "checkpoint", checkpoint.commit),
    Rule("checkpoint.integrity", "resume", checkpoint.integrity),
    Rule("checkpoint.torn_refused", "resume", checkpoint.torn_refused),
    Rule("checkpoint.advice", "checkpoint", checkpoint.advice, required=False),
    Rule("resume.equality", "resume", resume.resume_equality),
    Rule("resume.recovery", "resume", resume.recovery),
)


def judge(plan: Plan, found: Evidence) -> Judgement:
    """All checks of the phases that the plan runs, and the overall verdict."""
    checks = list(_judged(plan, found))
    completed = ending.completed(found)
    if completed is not None:
        # A reader of a run that was stopped needs to see that first; of others what was wrong.
        checks.insert(0 if ending.stopped(found) else len(checks), completed)
    made_way = ending.preempted(plan, found)
    if made_way is not None:
        checks = [ending.excused(check, made_way) for check in checks]
    verdict = overall(checks)
    # Last, because it compares the figures of all others, and apart: it never changes the verdict.
    checks.append(baseline.regression(plan, found, checks, verdict))
    return Judgement(verdict=verdict, checks=tuple(checks), notes=tuple(_notes(plan, found)))


def overall(checks: list[Check]) -> Verdict:
    """Worst status of the required checks: FAIL, ERROR, INCONCLUSIVE, SKIPPED; no check is ERROR."""
    statuses = {check.status for check in checks if check.required}
    order = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.SKIPPED, Verdict.PASS)
    return next((status for status in order if status in statuses), Verdict.ERROR)


def _notes(plan: Plan, found: Evidence) -> Iterator[str]:
    preflight = found.of(Preflight)
    cuda = preflight is not None and preflight.device == "cuda"
    if cuda and must_be_proven(plan.fabric):
        yield f"NCCL over {plan.fabric} is untested on hardware of our own."
    if preflight is not None and not cuda and plan.gpus_per_node:
        gpus = f"the {plan.gpus_per_node} GPUs per node were not validated"
        yield f"Ran on CPU by SMOKE_DEVICE=cpu, at {plan.depth} depth: {gpus}."
    if plan.partial:
        yield f"A partial run ({', '.join(plan.chosen_phases)}): it validates no stack."


def _judged(plan: Plan, found: Evidence) -> Iterator[Check]:
    preflight, world = found.of(Preflight), found.of(World)
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
