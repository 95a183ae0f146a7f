"""Advice as fields for people, and as a document for programs."""

import datetime
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from trainstack.advice import Advice, Run
from trainstack.advice.assumptions import assumptions
from trainstack.advice.ownership import OwnershipVerdict

SCHEMA = "trainstack.advice/1"
UNTESTED = "An estimate: untested on hardware. Train for an hour before you buy for a month."


def fields(advice: Advice, on: datetime.date, *, granted: bool = False) -> Iterator[tuple[str, str]]:
    """The best machines, more expensive ones and excluded ones; with `granted`, the assumptions."""
    yield "memory", advice.need.arithmetic
    if advice.best is None:
        yield "best", "none: no machine of the catalogs meets the limits"
    else:
        yield "best", _run(advice.best, on)
    for run in advice.others:
        assert advice.best
        yield "more expensive", f"{_run(run, on)}: {_behind(advice.best, run)}"
    for row in advice.lost:
        yield "excluded", f"{row.machine.gpu} ({row.machine.cloud} {row.machine.name}): {row.why}"
    if granted:
        for item in assumptions().values():
            yield "assumption", f"{item.value:g} {item.unit}: {item.says} [{item.source}, {item.date}]"


def document(advice: Advice) -> dict[str, Any]:
    """The advice in the form of `SCHEMA`."""
    return {
        "question": asdict(advice.question),
        "need": asdict(advice.need),
        "best": None if advice.best is None else _plain(advice.best),
        "others": [_plain(run) for run in advice.others],
        "lost": [asdict(row) for row in advice.lost],
        "assumptions": [item.model_dump(mode="json") for item in assumptions().values()],
    }


def ownership_fields(verdict: OwnershipVerdict) -> Iterator[tuple[str, str]]:
    """The recommendation with its figures and reasons."""
    yield "answer", "buy" if verdict.own else "rent"
    yield "cloud", f"${verdict.cloud_usd:,.0f} a year"
    yield "running", f"${verdict.running_usd:,.0f} a year, without the price of the servers"
    years = verdict.payback_years
    yield "payback", "never" if years is None else f"after {years:.1f} years"
    even = "never" if verdict.break_even_use > 1 else f"at a utilization of {verdict.break_even_use:.0%}"
    yield "break-even", even
    yield from (("because", reason) for reason in verdict.reasons)


def ownership_document(verdict: OwnershipVerdict) -> dict[str, Any]:
    """The recommendation as JSON; `break_even_use` is null where the cloud costs nothing."""
    even = verdict.break_even_use
    return {**asdict(verdict), "break_even_use": even if math.isfinite(even) else None}


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
