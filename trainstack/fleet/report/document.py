"""The document of a fleet command: counts, sums and every stack."""

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.exit_codes import ExitCode
from trainstack.fleet.outcome import FAILURES, StackOutcome, State

SCHEMA = "trainstack.fleet/1"
PRICE = ("minimum_usd", "expected_usd", "maximum_usd")


@dataclass(frozen=True)
class FleetReport:
    """Result of a fleet command."""

    command: str
    outcomes: Sequence[StackOutcome]
    workers: int
    seconds: float
    rehearsed: bool
    interrupted: bool = False
    at: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.UTC))

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of stacks by state."""
        return Counter(one.state.value for one in self.outcomes)

    @property
    def price(self) -> Mapping[str, float] | None:
        """Sums of the monthly prices in US dollars; None where the command has none."""
        prices = [price_of(one) for one in self.outcomes]
        known = [one for one in prices if one]
        return {name: round(sum(one[name] for one in known), 2) for name in PRICE} if known else None

    @property
    def code(self) -> ExitCode:
        """Exit code: the worst of the stacks."""
        states = {one.state for one in self.outcomes}
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if states & (FAILURES | {State.CHANGED, State.NOT_STARTED, State.INTERRUPTED}):
            return ExitCode.FAILED
        return ExitCode.VIOLATIONS if State.VIOLATED in states else ExitCode.DONE

    @property
    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "command": self.command,
            "at": self.at,
            "rehearsed": self.rehearsed,
            "workers": self.workers,
            "seconds": round(self.seconds, 1),
            "exit_code": int(self.code),
            "counts": dict(self.counts),
            "price": self.price,
            "stacks": [one.document for one in self.outcomes],
        }


def price_of(outcome: StackOutcome) -> Mapping[str, float] | None:
    """Monthly prices of a stack in US dollars."""
    found = (outcome.result or {}).get("price")
    return found if isinstance(found, dict) else None


def headline(command: str, outcome: StackOutcome) -> str:
    """The result of a stack in one line, or why there is none."""
    if outcome.result is None or outcome.state not in (State.DONE, State.VIOLATED):
        return outcome.reason
    return "; ".join(_facts(command, outcome.result)) or "nothing to report"


def _facts(command: str, result: Mapping[str, Any]) -> Iterator[str]:
    if "changes" in result:
        yield _changes(result["changes"])
    if ends := result.get("ends"):
        yield f"ends: {ends[0]['kind']} {ends[0]['text']}" + (
            f" and {len(ends) - 1} more" if ends[1:] else ""
        )
    if findings := [one for one in result.get("findings") or () if one["level"] == "mandatory"]:
        yield f"{len(findings)} policy violations, such as {findings[0]['policy']}"
    if short := result.get("over_quota"):
        yield f"over quota: {', '.join(one['key'] for one in short)}"
    if command == "audit":
        results = Counter(one["result"] for one in result["outcomes"])
        yield f"{result['resources']} resources, {results['fail']} violations, {results['waived']} waived"
    if command == "status":
        yield from _status(result)
    if command == "cost":
        yield from _cost(result)
    if command == "validate":
        passed = [group["passed"] for pool in result["pools"] for group in pool["groups"]]
        yield f"{passed.count(True)} of {len(passed)} groups of nodes passed"


def _changes(changes: Mapping[str, int]) -> str:
    changed = {name: count for name, count in sorted(changes.items()) if name != "same" and count}
    return ", ".join(f"{count} {name}" for name, count in changed.items()) or "no changes"


def _cost(result: Mapping[str, Any]) -> Iterator[str]:
    budget, price = result["budget_usd"], result["price"]
    yield f"{'above' if price['expected_usd'] > budget else 'within'} the budget of ${budget:,.0f}"
    if missing := price["not_priced"]:
        yield f"{len(missing)} without a price, such as {missing[0]}"


def _status(result: Mapping[str, Any]) -> Iterator[str]:
    yield result["state"]
    yield f"{result['resources']} resources"
    gate = result["gate"]["open"]
    if gate is not None:
        yield f"gate {'open' if gate else 'closed'}"
    if firing := (result.get("alerts") or {}).get("firing"):
        yield f"{len(firing)} alerts: {', '.join(sorted({one['name'] for one in firing}))}"
