"""Capacity from real books: sums, forecasts, advice, bad input, and the command."""

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.gpu_ledger.ledger import TeamBook
from infra.errors import UserError
from infra.stackspec import load_file
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.purchases import CapacityBlock
from tests.agents.gpu_ledger.workloads import DAY, GPU
from tests.trainstack.capacity.ledgers import BEGUN, USD, book, documents, months
from tests.trainstack.cli.command import run, run_json
from trainstack.capacity.advice import CapacityAdvice, advice, line
from trainstack.capacity.classes import GpuHourRate, PoolCapacity
from trainstack.capacity.forecasts import HoursForecast, TooShort, forecast, needed_days
from trainstack.capacity.history import History, history, read_files
from trainstack.capacity.months import UNKNOWN, class_months, coming, forecast_of, outlooks
from trainstack.capacity.notes import notes
from trainstack.capacity.pools import pools
from trainstack.ledger.periods import TimeSpan, bounds, following

START = datetime.datetime.fromtimestamp(BEGUN, datetime.UTC)
DAYS = 120
"""1 August to 28 November 2026."""


def rate(usd: float) -> GpuHourRate:
    return GpuHourRate(usd, "a list", datetime.date(2026, 11, 1), old=False)


def pool(kind: str = "on_demand", nodes: int = 0, **more: Any) -> PoolCapacity:
    """A pool of 4 nodes of 8 GPUs: on demand $2.50, block $1.50, spot $1.00 a GPU-hour."""
    own = {"spot": 1.0, "block": 1.5}.get(kind, USD)
    given = {
        "pool": "a100",
        "path": "layout.pools[0]",
        "flavor": "a100",
        "machine": "p4d.24xlarge",
        "cloud": "aws",
        "region": "us-east-1",
        "kind": kind,
        "reservation": "cr-1" if kind in ("reserved", "block") else None,
        "node_gpus": 8,
        "shares": 1,
        "max_nodes": 4,
        "nodes": nodes,
        "period": TimeSpan(None, None),
        "rates": {"own": rate(own), "on_demand": rate(USD), "spot": rate(1.0), "block": rate(1.5)},
        "guarantees": {},
    }
    return PoolCapacity(**{**given, **more})


def past(nodes: Callable[[int], float], days: int = DAYS, **more: Any) -> History:
    return history(months(book(nodes, days, **more), 1 + (days - 1) // 30))


def advised(one: PoolCapacity, known: History, resumable: float | None = None) -> Sequence[CapacityAdvice]:
    return [*advice([one], known, coming(known, 1)[0], resumable)]


@pytest.mark.parametrize(
    "nodes", [lambda _: 0.0, lambda _: 1.0, lambda day: day % 5, lambda day: (day * 7 % 13) / 4]
)
@pytest.mark.parametrize("committed", [0, 1, 4])
def test_sums_are_those_of_the_ledger(nodes: Callable[[int], float], committed: int) -> None:
    """Held hours and dollars are the ledger's; committed hours are held or idle."""
    made = book(nodes, DAYS)
    found = [*class_months([pool("reserved", committed)], history(months(made, 4)))]
    lines = [line for one in documents(made, 4) for team in one["teams"] for line in team["lines"]]
    assert sum(one.held_hours for one in found) == pytest.approx(sum(row["held_hours"] for row in lines))
    assert sum(one.usd or 0 for one in found) == pytest.approx(sum(row["usd"] for row in lines))
    assert sum(one.held_hours for one in found) == pytest.approx(
        sum(map(nodes, range(DAYS))) * 8 * 24, rel=1e-4
    )
    assert sum(one.committed_hours for one in found) == pytest.approx(committed * 8 * 24 * DAYS)
    for one in found:
        assert one.idle_hours >= -1e-6 and one.held_committed <= one.held_hours + 1e-6
        assert one.idle_usd == pytest.approx(one.idle_hours * USD)


def test_a_month_has_utilization_coverage_and_the_cost_of_a_held_hour() -> None:
    """2 of 4 nodes are held: half of the reservation is idle, so a held hour costs twice the price."""
    (one,) = class_months([pool("reserved", 4)], past(lambda _: 2.0, 30))
    assert (one.utilization, one.coverage, one.spot_share) == (0.5, 1.0, 0.0)
    assert one.usd_per_held_hour == pytest.approx(2 * USD)
    (one,) = class_months([pool("spot", 0)], past(lambda _: 2.0, 30))
    assert (one.utilization, one.coverage, one.spot_share) == (None, 0.0, 1.0)


def test_a_block_counts_from_its_start_to_its_end() -> None:
    period = TimeSpan(START + datetime.timedelta(days=9, hours=12), START + datetime.timedelta(days=16))
    block = pool("block", 2, period=period)
    known = past(lambda _: 1.0, 45)
    august, september = class_months([block], known)
    assert august.committed_hours == 2 * 8 * (6 * 24 + 12) and september.committed_hours == 0
    # Jobs hold one of two nodes; of the first day the ledger does not say in which hours.
    assert august.held_committed == 6 * 24 * 8 + 12 * 16
    assert any("ended" in note for note in notes([block], known))
    assert not next(outlooks([block], known, 1)).commitments


def test_pools_of_a_spec_have_times_devices_and_prices_with_their_source() -> None:
    spec = load_file("dev-aws").spec
    assert isinstance(spec.layout, ClusterLayout)
    ends = "2026-12-08T13:30:00+02:00"
    bought = CapacityBlock(kind="block", id="cr-1", starts="2026-12-01T11:30:00Z", ends=ends)
    first, *others = spec.layout.pools
    layout = spec.layout.model_copy(
        update={"pools": (first.model_copy(update={"purchase": bought}), *others)}
    )
    found, l4 = pools(spec.model_copy(update={"layout": layout}), datetime.date(2026, 12, 1))
    start = datetime.datetime(2026, 12, 1, 11, 30, tzinfo=datetime.UTC)
    assert found.period == TimeSpan(start, start + datetime.timedelta(days=7))
    assert (found.nodes, found.node_gpus, found.prepaid, l4.nodes) == (4, 8, True, 0)
    assert found.committed(*bounds("2026-12")) == 4 * 8 * 7 * 24
    own, listed = found.rates["own"], found.rates["on_demand"]
    assert own and listed and own == found.rates["block"] and own.usd < listed.usd and own.source


def test_prices_that_are_unknown_stay_unknown() -> None:
    unpriced = pool("reserved", 4, rates=dict.fromkeys(("own", "on_demand", "spot", "block")))
    known = past(lambda _: 1.0, price=None)
    for one in class_months([unpriced], known):
        assert (one.usd, one.idle_usd, one.usd_per_held_hour) == (None, None, None)
    assert {one.action for one in advised(unpriced, known)} == {"none"}
    assert all(one.usd is None for one in advised(unpriced, known))


def test_hours_of_a_pool_that_the_spec_lost_stay_in_the_sums() -> None:
    known = past(lambda _: 1.0, 30)
    other = pool(pool="h100", flavor="h100", machine="p5.48xlarge")
    found = [*class_months([other], known)]
    assert [(one.machine, one.held_hours) for one in found] == [("p5.48xlarge", 0), (UNKNOWN, 30 * 24 * 8)]
    assert any("a100" in note for note in notes([other], known))


def test_a_forecast_repeats_weeks_and_states_the_error_of_its_backtests() -> None:
    week = [10.0, 20.0, 30.0, 40.0, 50.0, 0.0, 0.0]
    steady = forecast(week * 20, lead=2, length=28)
    assert isinstance(steady, HoursForecast) and (steady.hours, steady.error) == (600.0, 0.0)
    # 14 days from the third day of a week.
    three = forecast(week * 20, 2, 3)
    assert isinstance(three, HoursForecast) and (three.hours, three.backtests) == (120.0, 16)
    doubled = forecast([10.0] * 60 + [20.0] * 60, lead=0, length=30)
    assert isinstance(doubled, HoursForecast) and doubled.hours == 600 and doubled.error > 100


@pytest.mark.parametrize(("lead", "length"), [(0, 28), (2, 31), (29, 31)])
def test_a_forecast_needs_four_backtests(lead: int, length: int) -> None:
    needed = needed_days(lead, length)
    assert forecast([1.0] * (needed - 1), lead, length) == TooShort(needed - 1, needed)
    found = forecast([1.0] * needed, lead, length)
    assert isinstance(found, HoursForecast) and found.backtests == 4


def test_the_error_contains_four_of_five_months() -> None:
    """Of a series that does not repeat, in steps of a week: at least 70 % of the actual values are within."""
    daily = [100.0 + (day * 7919 % 101) for day in range(400)]
    hits = []
    for origin in range(120, 370, 7):
        found = forecast(daily[:origin], 0, 30)
        assert isinstance(found, HoursForecast)
        hits.append(found.low <= sum(daily[origin : origin + 30]) <= found.high)
    assert sum(hits) / len(hits) >= 0.7


def test_days_after_a_gap_alone_are_history() -> None:
    made = book(lambda _: 1.0, DAYS)
    found = months(made, 4)
    known = history([one for one in found if one.month != "2026-09"])
    assert known.full_days()[0] == datetime.date(2026, 10, 1)
    assert any("2026-09" in note for note in known.notes)
    assert isinstance(forecast_of([pool()], known, "2026-12"), TooShort)


@pytest.mark.parametrize(
    ("one", "nodes", "action", "count"),
    [
        (pool(), lambda day: 3.0 if day % 7 < 5 else 1.0, "buy", 3),  # 71 % of days for node 2 and 3
        (pool(), lambda day: 3.0 if day % 7 < 4 else 1.0, "buy", 1),  # 57 %, below the break-even of 60 %
        (pool(), lambda _: 0.4, "keep", 0),
        (pool(), lambda day: 0.9 if day // 14 % 2 else 0.3, "none", 0),  # 60 % +- more
        (pool("spot"), lambda _: 2.0, "keep", 0),
        (pool("block", 4), lambda _: 1.5, "let go", 3),  # the second node is used for 50 %
        (pool("block", 2), lambda _: 2.0, "keep", 0),
        (pool("reserved", 4), lambda _: 1.5, "let go", 2),
        (pool("reserved", 2), lambda day: 2.0 if day % 7 == 0 else 0.5, "keep", 0),
        (pool(nodes=2), lambda _: 0.5, "let go", 1),
        (pool("spot", 2), lambda _: 0.5, "let go", 1),
        (pool(nodes=4), lambda _: 4.0, "buy", 4),  # paid all the time, at a higher price than a block
        (pool(nodes=1), lambda _: 4.0, "buy", 4),
        (pool("reserved", 4), lambda _: 4.0, "buy", 4),
    ],
)  # fmt: skip
def test_advice(one: PoolCapacity, nodes: Callable[[int], float], action: str, count: int) -> None:
    found = advised(one, past(nodes))
    first = found[0]
    assert (first.action, first.nodes) == (action, count), [line(row) for row in found]
    fixed = one.nodes and not one.prepaid and action != "buy"
    assert first.path == f"layout.pools[0].{'min_nodes' if fixed else 'purchase'}"
    if action in ("buy", "let go"):
        assert first.usd is not None and first.usd > 0


def test_savings_are_the_difference_of_two_bills() -> None:
    """3 nodes on five of seven days, 1 on two: 3 as a block against the same hours on demand."""
    known = past(lambda day: 3.0 if day % 7 < 5 else 1.0)
    found, held = advised(pool(), known)[0], forecast_of([pool()], known, "2026-12")
    assert (
        isinstance(held, HoursForecast) and found.usd is not None and found.break_even == pytest.approx(0.6)
    )
    assert found.usd == pytest.approx(held.hours * USD - 3 * 8 * 24 * 31 * 1.5)


@pytest.mark.parametrize("kind", ["on_demand", "reserved"])
def test_nodes_that_are_paid_all_the_time_are_replaced_by_a_block_at_a_lower_price(kind: str) -> None:
    """3 of 4 nodes are held for three quarters of the time: they cost the full month today."""
    (found,) = (one for one in advised(pool(kind, 3), past(lambda _: 2.7)) if one.action == "buy")
    assert found.nodes == 3 and found.usd == pytest.approx(3 * 8 * 24 * 31 * (USD - 1.5))


def test_a_new_block_has_no_history() -> None:
    new = pool("block", 2, period=TimeSpan(START + datetime.timedelta(days=DAYS - 5), None))
    assert [(one.action, one.forecast) for one in advised(new, past(lambda _: 1.0))] == [("none", None)]


@pytest.mark.parametrize(
    ("share", "action", "usd"), [(None, "none", None), (0.0, "none", None), (0.5, "move to spot", True)]
)
def test_only_jobs_that_resume_move_to_spot(share: float | None, action: str, usd: bool | None) -> None:
    found = advised(pool(), past(lambda _: 0.4), share)[-1]
    assert found.action == action and found.break_even == pytest.approx(0.6)
    if usd:
        assert found.usd == pytest.approx(0.4 * 8 * 24 * 31 * 0.5 * 1.5, rel=0.01)


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _with(path: Sequence[str | int], value: object) -> Callable[[str], str]:
    def change(text: str) -> str:
        body = json.loads(text)
        at = body
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return json.dumps(body)

    return change


@pytest.mark.parametrize(
    ("change", "code", "ends"),
    [
        (_cut, "ledger-file-invalid", "[0]"),
        (lambda _: "", "ledger-file-invalid", ".json"),
        (lambda text: text + text, "ledger-month-twice", ".json"),
        (_with(["schema"], "trainstack.queue/1"), "ledger-file-invalid", "[0].schema"),
        (_with(["month"], "2026-13"), "ledger-file-invalid", "[0].month"),
        (_with(["teams"], []), "ledger-file-invalid", "[0].teams"),
        (_with(["teams", 0, "lines", 0, "held_hours"], -1), "ledger-file-invalid", ".lines.0.held_hours"),
        (_with(["teams", 0, "lines", 0, "held_hours"], float("nan")), "ledger-file-invalid", ".held_hours"),
        (_with(["teams", 0, "lines", 0, "day"], "2026-07-01"), "ledger-file-invalid", ".lines.0.day"),
        (_with(["teams", 0, "seen"], "2026-07-01T00:00:00Z"), "ledger-file-invalid", ".teams.0.seen"),
        (_with(["stack"], "dev-gcp"), "ledger-of-other-stack", "--ledger"),
    ],
)  # fmt: skip
def test_bad_files(change: Callable[[str], str], code: str, ends: str, tmp_path: Path) -> None:
    file, other = tmp_path / "ledger.json", tmp_path / "other.json"
    first, second = documents(book(lambda _: 1.0, 40), 2)
    file.write_text(change(json.dumps(first)))
    other.write_text(json.dumps(second))
    with pytest.raises(UserError) as caught:
        read_files([file, other])
    assert [found for found, _ in caught.value.codes] == [code]
    assert caught.value.codes[0][1].endswith(ends)


def test_hours_beyond_the_end_of_the_book_are_named_and_not_forecast() -> None:
    made: TeamBook = book(lambda _: 1.0, 60)
    made.seen = BEGUN + 40 * DAY
    known = history(months(made, 2))
    assert any("2026-09-11" in note for note in known.notes)
    assert known.full_days()[-1] == datetime.date(2026, 9, 9)
    assert known.hours("a100", "2026-08") + known.hours("a100", "2026-09") == 60 * 24 * 8


def test_hours_that_the_pool_cannot_have_had_and_shared_reservations_are_named() -> None:
    known = past(lambda _: 2.0, 30)
    small = pool("reserved", 1, max_nodes=1)
    found = [*notes([small, replace(small, pool="b", flavor="b", path="layout.pools[1]")], known)]
    assert any(note.startswith("layout.pools[0].max_nodes") for note in found)
    assert any(note.startswith("layout.pools[1].purchase.id") for note in found)


@pytest.mark.parametrize(
    ("month", "count", "other"),
    [("2026-12", 1, "2027-01"), ("2026-01", -1, "2025-12"), ("2026-11", 14, "2028-01")],
)
def test_months(month: str, count: int, other: str) -> None:
    assert following(month, count) == other and following(other, -count) == month
    assert bounds(month)[1] == bounds(following(month))[0]


def test_the_command_reads_files_and_prints_the_same_each_time(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    made = documents(book(lambda day: 2.0 if day % 7 < 5 else 0.5, DAYS), 4)
    file.write_text("\n".join(map(json.dumps, made)))
    words = ("capacity", "-s", "dev-aws", "--ledger", str(file))
    code, found = run_json(*words)
    assert code == 0 and found == run_json(*words)[1]
    lines = [line for one in made for line in one["teams"][0]["lines"] if line["resource"] == GPU]
    held = sum(one["held_hours"] for one in found["months"])
    assert held == pytest.approx(sum(line["held_hours"] for line in lines))
    assert [one["action"] for one in found["advice"]] == ["buy", "none"] and found["queue"] is None
    code, text = run(*words)
    assert code == 0 and "2026-11 to date" in text and "p4d.24xlarge" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-s", "dev-gcp"), "ledger-of-other-stack"),
        (("-s", "dev-aws", "--rehearse"), "option-conflict"),
    ],
)
def test_a_file_that_does_not_belong_to_the_stack(
    arguments: Sequence[str], code: str, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.json"
    file.write_text(json.dumps(documents(book(lambda _: 1.0, 3), 1)[0]))
    with pytest.raises(UserError) as caught:
        run("capacity", *arguments, "--ledger", str(file))
    assert [found for found, _ in caught.value.codes] == [code]
