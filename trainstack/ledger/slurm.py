"""The ledger of a Slurm system: GPU-seconds of jobs from sacct, in the forms of the books of a cluster."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agents.gpu_ledger.attempts import NO_PROJECT, days
from agents.gpu_ledger.price import HOUR
from agents.gpu_ledger.row import LedgerRow, merged
from infra.slurm import SlurmSystem
from trainstack.ledger.books import Line, Month
from trainstack.ledger.hourly import HeldSpan, hourly
from trainstack.ledger.periods import bounds
from trainstack.queues.state import GPU
from trainstack.slurm.commands import SlurmCommands

_FIELDS = "JobIDRaw,Account,Partition,Start,End,AllocTRES"
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")


@dataclass(frozen=True)
class JobAttempt:
    """One attempt of a job; times in seconds since 1970."""

    job: str
    account: str
    partition: str
    start: int
    end: int | None
    """None while it runs."""
    gpus: int


def read_sacct(slurm: SlurmCommands, month: str) -> str:
    """The rows of sacct for a month, attempts before a requeue included. Raises UserError."""
    start, end = (f"{one:%Y-%m-%dT%H:%M:%S}" for one in bounds(month))
    return slurm.output(
        *("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"),
        *(f"--starttime={start}", f"--endtime={end}", f"--format={_FIELDS}"),
    )


def attempts(text: str) -> Iterator[JobAttempt]:
    """The attempts with GPUs in rows of `read_sacct`; jobs that did not start have none."""
    for row in text.splitlines():
        job, account, partition, start, end, tres = row.split("|")
        gpus = _GPUS.search(tres)
        if start.isdecimal() and gpus:
            stop = int(end) if end.isdecimal() else None
            yield JobAttempt(job, account, partition, int(start), stop, int(gpus[1]))


def months(system: SlurmSystem, text: str, month: str, now: int) -> list[Month]:
    """The month of each team; an account that is no team of the stack has its own name.

    A running job counts until `now`, in seconds since 1970.
    """
    first, after = (int(one.timestamp()) for one in bounds(month))
    until = min(now, after)
    rows: dict[str, list[LedgerRow]] = {one.name: [] for one in system.accounts}
    held_by: dict[str, list[HeldSpan]] = {}
    for one in attempts(text):
        span = HeldSpan(one.partition, one.gpus, one.start, one.end or until)
        held_by.setdefault(one.account, []).append(span)
        for day, since, end in days(max(one.start, first), min(one.end or until, until)):
            held = one.gpus * (end - since)
            row = LedgerRow(day, NO_PROJECT, one.partition, GPU, held, held)
            rows.setdefault(one.account, []).append(row)
    prices = {
        one.name: one.usd / one.machine.gpus
        for one in system.partitions
        if one.usd is not None and one.machine.gpus
    }
    known = {one.name: one for one in system.accounts}
    return [
        Month(
            team=known[account].team if account in known else account,
            namespace=account,
            lines=_lines(account, merged(found), prices),
            uncertain_hours=0.0,
            begun=first,
            seen=until,
            budget=_budget(system, account),
            notes=(),
            hourly=hourly(held_by.get(account, ()), first, until),
        )
        for account, found in rows.items()
    ]


def _lines(account: str, rows: list[LedgerRow], prices: Mapping[str, float]) -> list[Line]:
    return [
        Line(account, account, row, prices[row.pool] * row.held_s / HOUR if row.pool in prices else None)
        for row in rows
    ]


def _budget(system: SlurmSystem, account: str) -> dict[str, float | bool] | None:
    for one in system.accounts:
        if one.name == account and (one.monthly_usd is not None or one.monthly_gpu_hours is not None):
            limits = {"usd": one.monthly_usd, "gpu_hours": one.monthly_gpu_hours}
            return {**{key: value for key, value in limits.items() if value is not None}, "stop": True}
    return None
