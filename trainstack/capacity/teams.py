"""Held GPU-hours of each team by class and month, beside its guarantee (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.history import History
from trainstack.capacity.months import UNKNOWN, by_class
from trainstack.ledger.periods import HOUR


@dataclass(frozen=True)
class TeamUse:
    """A team in a class and a month. Hours are GPU-hours of the covered part of the month."""

    machine: str
    month: str
    team: str
    guaranteed_hours: float
    """By the guarantees of the stack file as it is today."""
    held_hours: float
    share: float | None
    """Of the held hours of all teams in the class; None where none held any."""
    held_usd: float | None
    """From the ledger; None where hours have no price."""


def team_uses(pools: Sequence[PoolCapacity], past: History) -> Iterator[TeamUse]:
    """Each team with hours or a guarantee, by month and class; hours of pools that are gone come last."""
    known = {pool.flavor for pool in pools}
    for month, (start, end) in past.months.items():
        hours = (end - start) / HOUR
        for machine, members in by_class(pools).items():
            promised: dict[str, float] = {}
            for pool in members:
                for team, gpus in pool.guarantees.items():
                    promised[team] = promised.get(team, 0.0) + gpus * hours
            yield from _class_uses(machine, [pool.flavor for pool in members], promised, past, month)
        gone = sorted({pool for _, pool, at in past.teams if at == month} - known)
        yield from _class_uses(UNKNOWN, gone, {}, past, month)


def _class_uses(
    machine: str, flavors: Sequence[str], promised: dict[str, float], past: History, month: str
) -> Iterator[TeamUse]:
    teams = {team for team, pool, at in past.teams if at == month and pool in flavors}
    whole = sum(past.hours(name, month) for name in flavors)
    for team in sorted({*teams, *promised}):
        rows = [past.teams[key] for name in flavors if (key := (team, name, month)) in past.teams]
        held = sum(hours for hours, _ in rows)
        unknown = any(usd is None for _, usd in rows)
        yield TeamUse(
            machine=machine,
            month=month,
            team=team,
            guaranteed_hours=promised.get(team, 0.0),
            held_hours=held,
            share=held / whole if whole else None,
            held_usd=None if unknown else sum(usd or 0.0 for _, usd in rows),
        )
