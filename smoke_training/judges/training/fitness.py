"""Judge of the machines' quiet (pure)."""

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Fitness, Rows, Training, Window
from smoke_training.evidence.world import World
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise


def fitness(_plan: Plan, found: Evidence) -> Check | None:
    """The null measurement of every rank, alone and while training was timed; the worse of both.

    Not required: a rule that decided in spite of noise has decided. What noise may do is turn a FAIL that it
    could explain into INCONCLUSIVE, and that is done where the FAIL is judged.
    """
    record, training, cluster = found.of(Fitness), found.of(Training), found.of(World)
    if record is None or cluster is None:
        return None
    seen: list[tuple[Rows, Rows | None, tuple[Window, ...]]] = [
        (record.spin, record.spin_queue, record.windows)
    ]
    if training is not None:
        seen.append((training.spin, training.spin_queue, training.windows))
    spreads = [noise.relative_spread(spin) for spin, _, _ in seen]
    reasons = [noise.unfit(spread, seen[index][2]) for index, spread in enumerate(spreads)]
    why = next((reason for reason in reasons if reason is not None), None)
    value = noise.worst(spreads)
    return Check(
        status=Verdict.ERROR if value is None else Verdict.INCONCLUSIVE if why else Verdict.PASS,
        measured=Measured(
            value=value,
            unit="MAD/median",
            n=sum(len(spin[0]) for spin, _, _ in seen),
            estimator="worst rank's spread of a fixed spin",
            reason=None if value is not None else "no spin was measured",
            detail={"ranks": _by_rank(seen)},
        ),
        expected=Expected(
            value=0.0, kind="declared", source="the noise ladder's limit", floor=noise.SPIN_SPREAD_LIMIT
        ),
        noise=_figures([window for _, _, windows in seen for window in windows]),
        culprits=_culprits(seen, cluster) if why else (),
        message=f"noisy_host: {why}"
        if why
        else f"a fixed spin varies by {value or 0:.1%} (MAD over median) on the worst rank",
        next_action="Run again when the machines are quieter, or give the ranks their own CPUs."
        if why
        else None,
    )


def _by_rank(seen: list[tuple[Rows, Rows | None, tuple[Window, ...]]]) -> list[dict[str, object]]:
    """Spread of every rank's spins, and what is left of it without waiting for CPUs held by others."""
    found: list[dict[str, object]] = []
    for rank in range(len(seen[0][0])):
        spreads = [noise.relative_spread([spin[rank]]) for spin, _, _ in seen]
        left = [
            noise.spin_spread([spin[rank]], [queue[rank]]) if queue is not None else None
            for spin, queue, _ in seen
        ]
        found.append({"rank": rank, "spread": noise.worst(spreads), "without_waiting": noise.worst(left)})
    return found


def _figures(windows: list[Window]) -> dict[str, float | None]:
    periods = [None if w.throttled_periods is None else float(w.throttled_periods) for w in windows]
    return {
        "steal": noise.worst([window.steal_share for window in windows]),
        "cpu_pressure": noise.worst([window.cpu_pressure for window in windows]),
        "throttled": noise.worst(periods),
    }


def _culprits(
    seen: list[tuple[Rows, Rows | None, tuple[Window, ...]]], cluster: World
) -> tuple[Culprit, ...]:
    """Nodes with a rank that is unfit by its own figures."""
    unfit: dict[int, str] = {}
    for spin, _, windows in seen:
        for facts in cluster.ranks:
            why = noise.unfit(noise.relative_spread([spin[facts.rank]]), [windows[facts.rank]])
            if why is not None:
                unfit.setdefault(facts.node, why)
    first = {facts.node: facts.rank for facts in reversed(cluster.ranks)}
    return tuple(
        Culprit(
            kind="node",
            id=str(node),
            node=host_of(first[node], cluster),
            cause=Cause.NOISY_HOST,
            evidence=(why,),
        )
        for node, why in sorted(unfit.items())
    )
