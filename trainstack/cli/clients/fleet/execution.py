"""Execution of a fleet command: interruption, journal, reports and the exit code."""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import typer

from trainstack.cli.clients.fleet.options import Chosen, ReportFiles
from trainstack.cli.clients.fleet.progress import LiveTable
from trainstack.cli.output import Format, print_json, print_table
from trainstack.fleet.journal import FleetJournal
from trainstack.fleet.outcome import StackOutcome, State, documents
from trainstack.fleet.report import junit, page
from trainstack.fleet.report.document import PRICE, SCHEMA, FleetReport, headline, price_of
from trainstack.fleet.runner import Runner, default_workers

T = TypeVar("T")


@dataclass
class Execution:
    """A running fleet command."""

    chosen: Chosen
    runner: Runner
    started: float = field(default_factory=time.monotonic)

    def attended(self, command: str, total: int, work: Callable[[], T]) -> T:
        """Do work in another thread, while this one takes interruptions. Raises what the work raises."""
        with LiveTable(command, total) as live:
            self.runner.progress = live
            return self._attended(live, work)

    def _attended(self, live: LiveTable, work: Callable[[], T]) -> T:
        done: list[T] = []
        failed: list[BaseException] = []
        ended = threading.Event()

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:
                failed.append(error)
            ended.set()

        def interrupt(*_: object) -> None:
            threading.Thread(
                target=self.runner.interrupt
            ).start()  # it may hold the lock that the signal broke into
            live.note("stopping: commands finish running steps; press again to stop at once")

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else of nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, interrupt) for number in numbers}
        try:
            threading.Thread(target=run).start()
            while not ended.wait(0.2):
                live.tick()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if failed:
            raise failed[0]
        return done[0]


def begin(
    chosen: Chosen,
    words: Sequence[str],
    *,
    workers: int | None,
    fresh: bool,
    limited: bool = True,
    offline: bool = False,
) -> Execution:
    """Begin a fleet command; `words` are those on which its results depend. Raises UserError."""
    stacks = chosen.stacks.stacks
    words = [*words, version("trainstack"), *(["rehearse"] if chosen.rehearse else [])]
    journal = FleetJournal.begin(chosen.base, words, stacks, fresh=fresh)
    limits = chosen.fleet.limits
    total = min(workers or limits.workers or default_workers(), max(1, len(stacks)))
    if journal.earlier:
        known = f"{len(journal.earlier)} results are known"
        typer.echo(f"continues {journal.folder.name}: {known}; --fresh begins anew", err=True)
    limit_s = limits.minutes * 60 if limited else None
    live = LiveTable(words[0], len(stacks))
    return Execution(chosen, Runner(chosen.base, journal, live, total, limit_s, chosen.rehearse, offline))


def unusable(chosen: Chosen) -> list[StackOutcome]:
    """Outcomes of the clients whose folders cannot be used."""
    return [
        StackOutcome(client, "", State.UNUSABLE, problems=documents(problems))
        for client, problems in chosen.stacks.problems.items()
    ]


def finish(
    execution: Execution, command: str, outcomes: Sequence[StackOutcome], reports: ReportFiles
) -> None:
    """Print and write the report of a command. Raises typer.Exit with its code."""
    seconds = time.monotonic() - execution.started
    listed = [*outcomes, *unusable(execution.chosen)]
    runner, stopped = execution.runner, execution.runner.stopped.is_set()
    report = FleetReport(command, listed, runner.workers, seconds, execution.chosen.rehearse, stopped)
    if not stopped:
        runner.journal.end()
    for path, text in ((reports.junit, junit.document), (reports.page, page.document)):
        if path:
            _write(path, text(report))
    if reports.form is Format.JSON:
        print_json(SCHEMA, report.document)
    else:
        _print(report)
    raise typer.Exit(report.code)


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _print(report: FleetReport) -> None:
    priced = report.price is not None
    head = ["client", "stack", "cloud", "state", "result", *(["expected $/month"] if priced else []), "s"]
    rows = []
    for one in report.outcomes:
        price = price_of(one)
        amount = [f"{price['expected_usd']:,.0f}" if price else ""] if priced else []
        rows.append(
            [
                one.client,
                one.stack,
                one.cloud,
                one.state.value,
                headline(report.command, one),
                *amount,
                f"{one.seconds:.0f}",
            ]
        )
    print_table(head, rows, right=("expected $/month", "s"))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(report.counts.items()))
    typer.echo(
        f"\n{len(report.outcomes)} stacks: {counts}; {report.workers} at one time, {report.seconds:.0f} s"
    )
    if report.price:
        low, middle, high = (f"${report.price[name]:,.0f}" for name in PRICE)
        typer.echo(f"cost per month  {low} min / {middle} expected / {high} max, of the stacks above")
    for one in report.outcomes:
        if one.log and one.state not in (State.DONE, State.VIOLATED):
            typer.echo(f"log of {one.id}: {one.log}")
