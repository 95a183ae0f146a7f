"""Maximum cost of a run, spending, and budget checks (pure). US dollars.

The cost of a job is billed time of one machine x machines x price of a machine on demand: the discount of
spot is in the billed time (BillableTimeInSeconds of SageMaker's API).
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from infra.errors import Problem
from infra.jobs.options import RunOrder
from infra.jobs.service import Moment, ServiceJob
from infra.outputs.jobs import BudgetOutputs, JobMachineOutputs, JobOutputs

HOUR_S = 3600.0


@dataclass(frozen=True)
class CostCeiling:
    """The most that a run can cost; `usd` is None where the price of its machine is unknown."""

    nodes: int
    hours: float
    """Run time, and time that machines stay warm afterwards."""
    usd_per_hour: float | None
    reserved: bool = False
    """The machines are billed separately, used or not; the price is what a run adds."""
    trials: int = 1
    """Maximum number of runs."""

    @property
    def usd(self) -> float | None:
        """Cost of all machines for the maximum time, in all trials."""
        hourly = self.usd_per_hour
        return None if hourly is None else self.trials * self.nodes * self.hours * hourly

    def __str__(self) -> str:
        paid = ", besides the reservation, which costs the same unused" if self.reserved else ""
        if self.usd is None:
            return f"unknown: no price of the machine ({self._amounts} h){paid}"
        return f"at most ${self.usd:,.2f} ({self._amounts} h x ${self.usd_per_hour:g}){paid}"

    @property
    def _amounts(self) -> str:
        trials = f"{self.trials} trials x " if self.trials > 1 else ""
        return f"{trials}{self.nodes} x {self.hours:g}"


@dataclass(frozen=True)
class Spent:
    """Spending of a month."""

    usd: float = 0.0
    """Billed so far."""
    running_usd: float = 0.0
    """Maximum cost of running jobs."""
    unknown: int = 0
    """Jobs on machines without a known price."""

    @property
    def total(self) -> float:
        """Spending if all running jobs use their maximum time."""
        return self.usd + self.running_usd


def price(order: RunOrder) -> CostCeiling:
    """The most that a run can cost."""
    hours = order.max_hours + order.options.keep_warm_minutes / 60
    reserved = order.machine.reservation is not None
    return CostCeiling(order.nodes, hours, order.machine.usd_per_hour, reserved, order.trials)


Prices = Mapping[tuple[str, bool], float | None]
"""Dollars per hour by the service's type of machine, and whether it is reserved."""


def prices(machines: Iterable[JobMachineOutputs]) -> Prices:
    """Price of an hour of each machine of a stack."""
    return {(one.machine, one.reservation is not None): one.usd_per_hour for one in machines}


def cost(job: ServiceJob, known: Prices) -> float | None:
    """Billed cost of a job so far; None without a price of its machine."""
    usd = known.get((job.machine, job.reserved))
    return None if usd is None else ((job.billed_s or 0) + job.warm_s) * job.nodes / HOUR_S * usd


def most(job: ServiceJob, known: Prices) -> float | None:
    """Cost of a job that uses its maximum time."""
    usd = known.get((job.machine, job.reserved))
    return None if usd is None else job.max_run_s * job.nodes / HOUR_S * usd


def month_of(now: Moment) -> Moment:
    """First moment of the month in UTC, as clouds count."""
    return now.astimezone(datetime.UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def spent(jobs: Iterable[ServiceJob], known: Prices, since: Moment) -> Spent:
    """Spending of jobs that ended since then, or run.

    A job counts in the month in which it ends.
    """
    usd, running, unknown = 0.0, 0.0, 0
    for job in jobs:
        if job.ended is not None and job.ended < since:
            continue
        amount = cost(job, known) if job.state.over else most(job, known)
        if amount is None:
            unknown += 1
        elif job.state.over:
            usd += amount
        else:
            running += amount
    return Spent(usd, running, unknown)


@dataclass(frozen=True)
class Room:
    """A budget that counts a run, and what it has left."""

    budget: BudgetOutputs
    spent: Spent
    asked: CostCeiling

    @property
    def broken(self) -> bool:
        """True when the run could exceed the budget; without a known price, when it is already spent."""
        return self.spent.total + (self.asked.usd or 0.0) > self.budget.monthly_usd

    @property
    def who(self) -> str:
        """Scope and name of the budget."""
        return f"{self.budget.scope} {self.budget.value}"

    def __str__(self) -> str:
        parts = [f"${self.spent.usd:,.2f} of ${self.budget.monthly_usd:,.2f} spent this month"]
        if self.spent.running_usd:
            parts.append(f"${self.spent.running_usd:,.2f} at most by running jobs")
        if self.asked.usd is not None:
            parts.append(f"${self.spent.total + self.asked.usd:,.2f} at most with this run")
        if self.spent.unknown:
            parts.append(f"not counted: {self.spent.unknown} jobs on machines without a known price")
        return f"{self.who}: {', '.join(parts)}"


def rooms(order: RunOrder, jobs: Iterable[ServiceJob], now: Moment) -> Iterator[Room]:
    """The budgets that count the run, with what they have left."""
    month, known = list(jobs), prices(order.outputs.machines)
    for budget in counting(order.outputs, order.person.name, order.person.team):
        theirs = [job for job in month if _counts(budget, job)]
        yield Room(budget, spent(theirs, known, month_of(now)), price(order))


def counting(outputs: JobOutputs, person: str, team: str) -> list[BudgetOutputs]:
    """The budgets that count runs of this person of this team."""
    whose = {"stack": outputs.stack, "team": team, "person": person}
    return [one for one in outputs.budgets if one.value == whose[one.scope]]


def broken(found: Iterable[Room]) -> Iterator[Problem]:
    """A problem for each budget with `over_budget: stop` that the run could exceed."""
    for room in found:
        if room.broken and room.budget.over_budget == "stop":
            fix = (
                "Choose fewer hours (--max-hours) or a cheaper machine, stop running jobs (trainstack runs), "
                "or raise the budget in the stack file."
            )
            rule = f"the run could exceed the budget of the {room.who}, which has over_budget: stop"
            yield Problem("budget", None, f"{rule}: {room}", fix, code="budget-exceeded")


def _counts(budget: BudgetOutputs, job: ServiceJob) -> bool:
    if budget.scope == "stack":
        return True
    return budget.value == (job.team if budget.scope == "team" else job.person)
