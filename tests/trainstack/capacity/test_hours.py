"""Use by the hour: what a mean of days hides, in the report and in advice."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest

from infra.slurm import SystemOptions, system
from infra.stackspec import load_file
from tests.trainstack.capacity.ledgers import BEGUN
from tests.trainstack.capacity.test_capacity import START, advised, past, pool
from tests.trainstack.cli.command import run, run_json
from trainstack.capacity.forecasts import HoursForecast, forecast
from trainstack.capacity.history import History
from trainstack.capacity.hours import hour_uses
from trainstack.ledger import forms, slurm
from trainstack.ledger.hourly import HeldSpan, hourly

NIGHT = [0.0] * 8 + [4 * 8.0] * 12 + [0.0] * 4
"""4 nodes of 8 GPUs from 8 to 20 o'clock."""


def by_hour(known: History, hours: list[float]) -> History:
    """The history with the same hours on each day."""
    days = [START.date() + datetime.timedelta(days=day) for day in range(120)]
    return replace(
        known, hours_of={("a100", day): hours for day in days}, months_by_hour=frozenset(known.months)
    )


def test_spans_are_divided_at_hours_and_days() -> None:
    spans = [HeldSpan("a", 2, BEGUN + 23 * 3600 + 1800, BEGUN + 26 * 3600), HeldSpan("b", 1, 0, BEGUN)]
    found = hourly(spans, BEGUN, BEGUN + 25 * 3600)
    assert found["a", "2026-08-01"][22:] == (0.0, 1.0) and found["a", "2026-08-02"][:2] == (2.0, 0.0)
    assert [*found] == [("a", "2026-08-01"), ("a", "2026-08-02")]


def test_a_book_that_counts_by_day_has_no_hours() -> None:
    assert not [*hour_uses([pool("reserved", 4)], past(lambda _: 2.0))]


def test_peaks_and_empty_hours_of_a_commitment() -> None:
    """The mean of 2 of 4 nodes is 4 nodes for half of the day."""
    (one,) = hour_uses([pool("reserved", 4)], by_hour(past(lambda _: 2.0), NIGHT))
    assert (one.days, one.nodes, one.mean, one.peak, one.p95) == (28, 4, 2.0, 4.0, 4.0)
    assert (one.full, one.idle, one.peak_at.hour) == (0.5, 0.5, 8)
    assert one.by_hour == tuple(hours / 8 for _ in range(7) for hours in NIGHT)
    (free,) = hour_uses([pool()], by_hour(past(lambda _: 2.0), NIGHT))
    assert free.full is None


def test_advice_follows_the_hours_where_they_are_known() -> None:
    """By day, two nodes seem to be held all the time, and two never."""
    known = past(lambda _: 2.0)
    hours = by_hour(known, NIGHT)
    assert next((one.action, one.nodes) for one in advised(pool("reserved", 4), known)) == ("let go", 2)
    assert next(one.action for one in advised(pool("reserved", 4), hours)) == "keep"
    assert next((one.action, one.nodes) for one in advised(pool(), known)) == ("buy", 2)
    assert next(one.action for one in advised(pool(), hours)) == "keep"


def test_backtests_are_shown_with_what_followed() -> None:
    found = forecast([10.0] * 60 + [20.0] * 60, lead=0, length=30)
    assert isinstance(found, HoursForecast) and len(found.tests) == found.backtests
    latest = found.tests[0]
    assert (latest.day, latest.forecast, latest.actual) == (90, 600.0, 600.0)
    assert max(abs(one.forecast - one.actual) for one in found.tests) >= found.error


def test_a_slurm_system_has_hours_and_backtests(tmp_path: Path) -> None:
    """From sacct: 2 nodes from 8 to 20 o'clock on each day of four months."""
    spec = load_file("large-slurm-aws").spec
    made = system(spec, SystemOptions())
    account = made.accounts[0].name
    documents = []
    for month, days in (("2026-08", 31), ("2026-09", 30), ("2026-10", 31), ("2026-11", 30)):
        first = int(datetime.datetime.fromisoformat(f"{month}-01T00:00:00+00:00").timestamp())
        starts = [first + day * 86400 + 8 * 3600 for day in range(days)]
        rows = [f"1|{account}|p4d|{at}|{at + 12 * 3600}|gres/gpu=16" for at in starts]
        found = slurm.months(made, "\n".join(rows), month, first + days * 86400)
        body = {"schema": "trainstack.ledger/1", "stack": spec.name, "month": month}
        documents.append({**body, "teams": forms.documents(found)})
    file = tmp_path / "ledger.json"
    file.write_text("\n".join(map(json.dumps, documents)))
    words = ("capacity", "-s", spec.name, "--ledger", str(file))
    code, report = run_json(*words, "--month", "2026-10")
    assert code == 0 and {one["month"] for one in report["months"]} == {"2026-10"}
    (use,) = report["use_by_hour"]
    assert (use["pool"], use["mean"], use["peak"], use["idle"]) == ("p4d", 1.0, 2.0, 0.5)
    (ahead,) = (one for one in report["forecast"] if one["class"] == "p4d.24xlarge")
    assert len(ahead["tests"]) == ahead["backtests"]
    assert all(one["forecast_hours"] == pytest.approx(one["held_hours"]) for one in ahead["tests"])
    code, text = run(*words)
    assert code == 0 and "nodes by the hour" in text
