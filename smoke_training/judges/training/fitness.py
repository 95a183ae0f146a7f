"""Judge of noise on the machines (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Fitness, Training
from smoke_training.evidence.world import World
from smoke_training.judges.training import step
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise


def fitness(plan: Plan, found: Evidence) -> Check:
    """The null measurement of every rank, alone and while training was timed; the worse of both.

    Not required: a rule that decided in spite of noise has decided. Noise may turn a FAIL that it could
    explain into INCONCLUSIVE; the judge of that FAIL does so. Only then are nodes named here: noise without
    consequences is reported as a number and needs no action.
    """
    record, training, cluster = found.need(Fitness), found.of(Training), found.need(World)
    seen: list[Fitness | Training] = [record] if training is None else [record, training]
    spreads = [noise.relative_spread(item.spin) for item in seen]
    reasons = [noise.unfit(spread, item.windows) for spread, item in zip(spreads, seen, strict=True)]
    why = next((reason for reason in reasons if reason is not None), None)
    value, suffered = noise.worst(spreads), training is not None and step.excused(plan, training)
    text = f"a fixed spin varies by {value or 0:.1%} (MAD over median) on the worst rank"
    if why is not None:
        text = f"noisy_host: {why}" if suffered else f"{why}; it changed no verdict"
    return Check(
        status=Verdict.ERROR if value is None else Verdict.INCONCLUSIVE if suffered else Verdict.PASS,
        measured=Measured(
            value=value,
            unit="MAD/median",
            n=sum(len(item.spin[0]) for item in seen),
            estimator="worst rank's spread of a fixed spin",
            reason=None if value is not None else "no spin was measured",
            detail={"ranks": [_of_rank(seen, rank) for rank in range(len(record.spin))]},
        ),
        expected=Expected(
            value=0.0, kind="declared", source="the noise ladder's limit", floor=noise.SPIN_SPREAD_LIMIT
        ),
        noise=noise.figures([window for item in seen for window in item.windows]),
        culprits=_culprits(seen, cluster) if suffered else (),
        message=text,
        next_action="Run again when the machines are quieter, or give the ranks their own CPUs."
        if suffered
        else None,
    )


def _of_rank(seen: Sequence[Fitness | Training], rank: int) -> dict[str, object]:
    """Spread of a rank's spins, and the rest of it without waiting for CPUs."""
    spreads, left = [], []
    for item in seen:
        spreads.append(noise.relative_spread([item.spin[rank]]))
        if item.spin_queue is not None:
            calm = noise.without_queue([item.spin[rank]], [item.spin_queue[rank]])
            left.append(noise.relative_spread(calm))
    return {"rank": rank, "spread": noise.worst(spreads), "without_waiting": noise.worst(left)}


def _culprits(seen: Sequence[Fitness | Training], cluster: World) -> tuple[Culprit, ...]:
    unfit: dict[int, Culprit] = {}
    for item in seen:
        for facts in cluster.ranks:
            spread = noise.relative_spread([item.spin[facts.rank]])
            why = noise.unfit(spread, [item.windows[facts.rank]])
            if why is not None and facts.node not in unfit:
                name, cause = str(facts.node), Cause.NOISY_HOST
                unfit[facts.node] = Culprit("node", name, cause, (why,), node=facts.host)
    return tuple(culprit for _, culprit in sorted(unfit.items()))
