"""An answer as lines for people, and as a document for programs."""

import datetime
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from trainstack.advice import Advice, Run
from trainstack.advice.assumptions import assumptions
from trainstack.advice.ownership import Verdict

SCHEMA = "trainstack.advice/1"
UNTESTED = "An estimate: untested on hardware. Train for an hour before you buy for a month."


def lines(advice: Advice, on: datetime.date, *, granted: bool = False) -> Iterator[str]:
    """The answer and why the others lost; with `granted`, what it stands on. Old prices are named."""
    yield f"memory   {advice.need.arithmetic}"
    if advice.best is None:
        yield "best     none: no machine of the catalogs keeps to what you ask"
    else:
        yield f"best     {_run(advice.best, on)}"
    for run in advice.others:
        assert advice.best
        yield f"dearer   {_run(run, on)}: {_behind(advice.best, run)}"
    for row in advice.lost:
        yield f"out      {row.machine.gpu} ({row.machine.cloud} {row.machine.name}): {row.why}"
    if granted:
        yield "taken for granted"
        for item in assumptions().values():
            yield f"  {item.value:g} {item.unit}: {item.says} [{item.source}, {item.date}]"
    yield UNTESTED


def document(advice: Advice) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "schema": SCHEMA,
        "question": asdict(advice.question),
        "need": asdict(advice.need),
        "best": None if advice.best is None else _plain(advice.best),
        "others": [_plain(run) for run in advice.others],
        "lost": [asdict(row) for row in advice.lost],
        "assumptions": [item.model_dump(mode="json") for item in assumptions().values()],
    }


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Whether to buy, with the figures."""
    yield f"answer     {'buy' if verdict.own else 'rent'}"
    yield f"cloud      ${verdict.cloud_usd:,.0f} a year"
    yield f"running    ${verdict.running_usd:,.0f} a year, without the price of the servers"
    never = "never" if verdict.payback_years is None else f"after {verdict.payback_years:.1f} years"
    yield f"payback    {never}"
    even = "never" if verdict.break_even_use > 1 else f"from {verdict.break_even_use:.0%} of use on"
    yield f"break-even {even}"
    yield from (f"because    {reason}" for reason in verdict.reasons)


def _run(run: Run, on: datetime.date) -> str:
    machine, price, usd = run.machine, run.price, f"${run.usd:,.2f}" if run.usd < 100 else f"${run.usd:,.0f}"
    old = f", by an old price of {price.source.date}" if price.source.old(on) else ""
    return (
        f"{run.count} x {machine.cloud} {machine.name} in {price.region}, {price.market.replace('_', ' ')} "
        f"({run.gpus} x {machine.gpu}, {run.way}): {run.hours:,.1f} h, {usd}{old}; "
        f"{run.gpu_gb:,.1f} GB on each GPU"
    )


def _plain(run: Run) -> dict[str, Any]:
    price = {**vars(run.price), "source": run.price.source.model_dump(mode="json")}
    return {**asdict(run), "price": price, "gpus": run.gpus, "usd": run.usd}


def _behind(best: Run, run: Run) -> str:
    return f"{run.usd / best.usd:.2f} x the price, {run.hours / best.hours:.2f} x the time"
