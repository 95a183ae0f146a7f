"""Machines for a training run, with duration and cost, and reasons why others do not fit (pure).

An estimate from the catalogs' prices and `assumptions.toml`; it was never compared with a run on hardware.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError, did_you_mean
from trainstack.advice.machine import Cloud, Machine, Market, Price
from trainstack.advice.machines import CLOUDS, OF_CLOUD
from trainstack.advice.memory import Need, need
from trainstack.advice.question import Question
from trainstack.advice.runs import Lost, Run, run_on

__all__ = ["CLOUDS", "Advice", "Lost", "Question", "Run", "advise"]


@dataclass(frozen=True)
class Advice:
    """The answer to a question."""

    question: Question
    need: Need
    best: Run | None
    """The cheapest within deadline and budget."""
    others: tuple[Run, ...]
    """Further ones within both, the cheapest first; one for each GPU model of a cloud."""
    lost: tuple[Lost, ...]
    """The other GPU models of a cloud, with the reason of the last of their machines in the catalog."""


def advise(question: Question, clouds: Sequence[Cloud] = CLOUDS, region: str | None = None) -> Advice:
    """Rank the machines of some clouds; without a region each is priced in its cheapest.

    Raises UserError for a region that none of the clouds has.
    """
    if region is not None and not any(region in OF_CLOUD[cloud].regions() for cloud in clouds):
        rule = f"no region of {' or '.join(clouds)} in the catalog"
        known = [name for cloud in clouds for name in OF_CLOUD[cloud].regions()]
        fix = did_you_mean(region, known, "Leave it out for all regions.")
        raise UserError([Problem("--region", region, rule, fix, code="unknown-region")])
    wanted = need(question)
    found: dict[tuple[str, str], list[Run | Lost]] = {}
    for cloud in clouds:
        for machine in OF_CLOUD[cloud].machines():
            made = run_on(machine, question, wanted, _price(machine, question.markets, region))
            if isinstance(made, Run) and made.price.most_h is not None and made.hours > made.price.most_h:
                others = [market for market in question.markets if market != made.price.market]
                made = run_on(machine, question, wanted, _price(machine, others, region))
            found.setdefault((cloud, machine.gpu), []).append(_within(made, question))
    runs, lost = list[Run](), list[Lost]()
    for rows in found.values():
        fitting = [row for row in rows if isinstance(row, Run)]
        if fitting:
            runs.append(min(fitting, key=lambda run: run.usd))
        else:
            lost.append(next(row for row in reversed(rows) if isinstance(row, Lost)))
    runs.sort(key=lambda run: run.usd)
    return Advice(question, wanted, runs[0] if runs else None, tuple(runs[1:]), tuple(lost))


def _within(made: Run | Lost, question: Question) -> Run | Lost:
    if isinstance(made, Lost) or question.budget_usd is None or made.usd <= question.budget_usd:
        return made
    cost = f"costs ${made.usd:,.0f} ({made.count} x {made.machine.name} for {made.hours:,.1f} h)"
    return Lost(made.machine, f"{cost}, ${question.budget_usd:,.0f} are allowed")


def _price(machine: Machine, markets: Sequence[Market], region: str | None) -> Price | None:
    types = OF_CLOUD[machine.cloud]
    places = [place for place in types.regions() if region in (None, place)]
    known = (types.price(machine.name, place, market) for place in places for market in markets)
    return min((price for price in known if price), key=lambda price: price.usd, default=None)
