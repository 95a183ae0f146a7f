"""Held GPU-hours by pool and day from documents of the ledger, and the time that they cover."""

import datetime
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from infra.errors import Problem, UserError
from trainstack.ledger.hourly import HOURS
from trainstack.ledger.periods import ALWAYS, DAY, HOUR, TimeSpan, bounds, days, following, month_of

_Hours = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_FIX = "Write it again: trainstack ledger -s STACK --month MONTH --format json > FILE."


class HeldLine(BaseModel):
    """A line of the ledger, as far as capacity needs it."""

    pool: str
    day: datetime.date
    held_hours: _Hours
    usd: _Hours | None


class HourLine(BaseModel):
    """Hours of a pool on a day."""

    pool: str
    day: datetime.date
    held_hours: Annotated[list[_Hours], Field(min_length=HOURS, max_length=HOURS)]


class TeamMonth(BaseModel):
    """A month of a team."""

    team: str
    begun: AwareDatetime
    seen: AwareDatetime
    uncertain_hours: _Hours
    lines: list[HeldLine]
    hourly: list[HourLine] | None = None
    """None: the ledger counts by day."""


class LedgerMonth(BaseModel):
    """A document of `trainstack ledger --format json`."""

    form: Literal["trainstack.ledger/1"] = Field(alias="schema")
    stack: str
    month: Annotated[str, Field(pattern="^[0-9]{4}-(0[1-9]|1[0-2])$")]
    teams: Annotated[list[TeamMonth], Field(min_length=1)]

    @property
    def span(self) -> tuple[datetime.datetime, datetime.datetime]:
        """The covered part of the month.

        One program writes the books of all teams, and writes that of a team without running jobs rarely: the
        latest time of any of them is that until which all of them are complete.
        """
        start, end = bounds(self.month)
        first = max(start, min(team.begun for team in self.teams))
        return first, max(first, min(end, max(team.seen for team in self.teams)))


@dataclass(frozen=True)
class History:
    """Hours of all teams. Sums of `held` and `usd` are those of the ledger's lines."""

    months: Mapping[str, tuple[datetime.datetime, datetime.datetime]]
    """The covered part of each month with data, in order."""
    held: Mapping[tuple[str, datetime.date], float]
    """GPU-hours by pool (its name in queues) and day."""
    usd: Mapping[tuple[str, str], float | None]
    """US dollars by pool and month, at the prices of then; None where hours have no price."""
    teams: Mapping[tuple[str, str, str], tuple[float, float | None]]
    """GPU-hours and US dollars by team, pool and month; None where hours have no price."""
    notes: tuple[str, ...]
    hours_of: Mapping[tuple[str, datetime.date], Sequence[float]] = field(default_factory=dict)
    """GPU-hours of the 24 hours of a day, by pool and day; days without any are absent."""
    months_by_hour: frozenset[str] = frozenset()
    """Months in which the ledgers of all teams count by the hour."""

    @property
    def end(self) -> datetime.datetime:
        """The time until which it is complete."""
        return max(end for _, end in self.months.values())

    def hours(self, pool: str, month: str) -> float:
        """GPU-hours of a pool in a month."""
        return self._by_month.get((pool, month), 0.0)

    def hourly(self, pool: str, on: Sequence[datetime.date]) -> list[float] | None:
        """GPU-hours of a pool in each hour of days; None without days, or where one is counted as a whole."""
        if not on or not {month_of(day) for day in on} <= self.months_by_hour:
            return None
        none = [0.0] * HOURS
        return [amount for day in on for amount in self.hours_of.get((pool, day), none)]

    @cached_property
    def _by_month(self) -> Mapping[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        for (pool, day), hours in self.held.items():
            key = pool, month_of(day)
            found[key] = found.get(key, 0.0) + hours
        return found

    def full_days(self, within: TimeSpan = ALWAYS) -> list[datetime.date]:
        """The last whole days of a period without a gap, in order."""
        whole = {
            midnight.date()
            for start, end in self.months.values()
            for midnight in days(start, end)
            if start <= midnight
            and midnight + DAY <= end
            and within.hours(midnight, midnight + DAY) == DAY / HOUR
        }
        found: list[datetime.date] = []
        at = max(whole, default=None)
        while at in whole:
            found.append(at)
            at -= DAY
        return found[::-1]


def read_files(paths: Iterable[Path]) -> list[LedgerMonth]:
    """All documents of files, each with one or several of them. Raises UserError with every problem."""
    found: list[tuple[Path, LedgerMonth]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found += [(path, one) for one in _documents(path)]
        except UserError as error:
            problems += error.problems
    problems += _doubled(found)
    if problems:
        raise UserError(problems)
    return [one for _, one in found]


def _documents(path: Path) -> Iterator[LedgerMonth]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        rule = f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        raise UserError([_problem(str(path), rule)]) from error
    at, number = 0, 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        where, number = f"{path}[{number}]", number + 1
        try:
            body, at = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            rule = f"ends or breaks in line {line}: no whole JSON document"
            raise UserError([_problem(where, rule)]) from error
        yield parsed(body, where)
    if not number:
        raise UserError([_problem(str(path), "has no document")])


def parsed(body: Any, where: str) -> LedgerMonth:
    """A document of the ledger. Raises UserError with every value that breaks a rule."""
    try:
        found = LedgerMonth.model_validate(body)
    except ValidationError as error:
        raise UserError(
            _problem(f"{where}.{'.'.join(map(str, one['loc']))}", one["msg"], one["input"])
            for one in error.errors(include_url=False)
        ) from error
    problems = [*_times(found, where)]
    if problems:
        raise UserError(problems)
    return found


def _times(found: LedgerMonth, where: str) -> Iterator[Problem]:
    names: set[str] = set()
    for index, team in enumerate(found.teams):
        at = f"{where}.teams.{index}"
        if team.team in names:
            yield _problem(f"{at}.team", "the team is in the document twice", team.team)
        names.add(team.team)
        if team.seen < team.begun:
            yield _problem(
                f"{at}.seen", f"is before the book's begin {team.begun}: a clock jumped", str(team.seen)
            )
        for row, line in enumerate(team.lines):
            if month_of(line.day) != found.month:
                yield _problem(f"{at}.lines.{row}.day", f"is not in month {found.month}", str(line.day))


def _doubled(found: Sequence[tuple[Path, LedgerMonth]]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path, one in found:
        if one.month in first:
            rule = f"has month {one.month}, which {first[one.month]} has, too"
            yield _problem(str(path), rule, fix="Name one document per month.", code="ledger-month-twice")
        first.setdefault(one.month, path)
    stacks = sorted({one.stack for _, one in found})
    if len(stacks) > 1:
        rule, fix = f"are of several stacks: {', '.join(stacks)}", "Name the files of one stack."
        yield _problem("--ledger", rule, fix=fix, code="ledger-of-other-stack")


def _problem(
    path: str, rule: str, value: object = None, *, fix: str = _FIX, code: str = "ledger-file-invalid"
) -> Problem:
    shown = value if value is None or isinstance(value, str | int | float) else None
    return Problem(path, shown, rule, fix, code=code)


def history(found: Sequence[LedgerMonth]) -> History:
    """The hours of all documents; one per month."""
    held: dict[tuple[str, datetime.date], float] = {}
    teams: dict[tuple[str, str, str], tuple[float, float | None]] = {}
    for one in found:
        for team in one.teams:
            for line in team.lines:
                held[line.pool, line.day] = held.get((line.pool, line.day), 0.0) + line.held_hours
                key = team.team, line.pool, one.month
                hours, usd = teams.get(key, (0.0, 0.0))
                unknown = usd is None or (line.usd is None and line.held_hours)
                teams[key] = hours + line.held_hours, None if unknown else (usd or 0.0) + (line.usd or 0.0)
    hours_of: dict[tuple[str, datetime.date], list[float]] = {}
    for row in (row for one in found for team in one.teams for row in team.hourly or ()):
        sums = hours_of.get((row.pool, row.day), [0.0] * HOURS)
        hours_of[row.pool, row.day] = [sum(both) for both in zip(sums, row.held_hours, strict=True)]
    by_hour = frozenset(one.month for one in found if all(team.hourly is not None for team in one.teams))
    by_pool: dict[tuple[str, str], float | None] = {}
    for (_, pool, month), (_, usd) in teams.items():
        before = by_pool.get((pool, month), 0.0)
        by_pool[pool, month] = None if before is None or usd is None else before + usd
    ordered = sorted(found, key=lambda one: one.month)
    spans = {one.month: one.span for one in ordered}
    used = {month for _, month in by_pool}
    months = {month: span for month, span in spans.items() if span[0] < span[1] or month in used}
    said = tuple(_notes(ordered, spans))
    return History(months, held, by_pool, teams, said, hours_of, by_hour)


def _notes(
    found: Sequence[LedgerMonth], spans: Mapping[str, tuple[datetime.datetime, datetime.datetime]]
) -> Iterator[str]:
    for one, after in itertools.pairwise(found):
        month = following(one.month)
        while month < after.month:
            yield f"no ledger of {month}: forecasts use the days after it"
            month = following(month)
        if (end := spans[one.month][1]) < bounds(one.month)[1]:
            yield f"the ledger of {one.month} ends on {end:%Y-%m-%d %H:%M}, before its month does"
    for one in found:
        start, end = spans[one.month]
        late = sorted({str(line.day) for team in one.teams for line in team.lines if line.day > end.date()})
        early = sorted(
            {str(line.day) for team in one.teams for line in team.lines if line.day < start.date()}
        )
        for rows, words in ((late, "after its end"), (early, "before its begin")):
            if rows:
                yield (
                    f"the ledger of {one.month} has hours {words} ({rows[0]}, {len(rows)} days): a clock "
                    "jumped; sums contain them, forecasts do not"
                )
        if (uncertain := sum(team.uncertain_hours for team in one.teams)) > 0:
            yield f"up to {uncertain:,.1f} more GPU-hours in {one.month}, of jobs without a recorded end"
