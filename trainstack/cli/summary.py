"""What a person sees when an operation has ended; the last lines of `up` fit one screen."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from infra import cost, stackspec
from infra.catalog.durations import durations
from infra.checkpoints import checkpoints
from infra.engine import recovery
from infra.engine.console import new_console
from infra.engine.progress import short
from infra.engine.stack import EngineStack, OperationOutcome
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from rehearsal.client import Rehearsal
from smoke_training.launchers.verdict_record import readable
from trainstack.cli import job_summary
from trainstack.cli.results import UnreadableError, headline, read
from trainstack.forecast import forecast

_PAST = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "same": "unchanged",
}


@dataclass(frozen=True)
class SmokeFigures:
    """What a summary shows of a smoke run."""

    headline: str
    location: str


def of_deployment(
    loaded: stackspec.LoadedSpec,
    engine: EngineStack,
    outcome: OperationOutcome,
    rehearsal: Rehearsal | None,
    *,
    verbose: bool = False,
) -> None:
    """What was built, what it costs, how well it trains, where things are, what to do next.

    With `verbose`, also the kinds of resources that the forecast of the real deploy leaves out.
    """
    console = new_console()
    if not outcome.succeeded:
        of_changes("up", outcome)
        return
    _say_findings(console, outcome)
    found = {key: output.value for key, output in engine.outputs().items()}
    of_jobs = job_outputs.is_of_jobs(found)
    rows = _rows_of_jobs(loaded, found) if of_jobs else _rows_of_cluster(loaded, found, rehearsal)
    stack = loaded.spec.name
    where = "rehearsed in the emulated clouds" if rehearsal else "deployed"
    done = f"[bold green]Stack {stack} is {where}[/] in {outcome.seconds:.0f} s: {_counts(outcome)}"
    console.print(f"\n{done}", soft_wrap=True)
    if rehearsal:
        rows += _times(rehearsal, engine.project, stack, verbose=verbose)
    for name, text in rows:
        console.print(f"  {name:15} {text}", markup=False, highlight=False, soft_wrap=True)
    _next_steps(console, stack, rehearsal, of_jobs=of_jobs)


def of_preview(
    loaded: stackspec.LoadedSpec,
    outcome: OperationOutcome,
    shortfalls: Sequence[object] = (),
    ended: Sequence[str] = (),
    *,
    on: datetime.date,
) -> None:
    """What would change, what of nodes and data ends, and the price of the stack as the spec has it."""
    console = new_console()
    if not outcome.succeeded:
        of_changes("preview", outcome)
        return
    console.print(f"\n[bold]Would change[/] stack {loaded.spec.name}: {_counts(outcome)}", soft_wrap=True)
    _say_findings(console, outcome)
    for line in ended:
        console.print(f"  {line}", style="bold yellow", markup=False, soft_wrap=True)
    estimate = cost.estimate(loaded.spec, on)
    table = Table("item", "min $/month", "expected", "max", "price of", box=None, padding=(0, 2, 0, 2))
    for item in estimate.items:
        table.add_row(
            item.name, *map(_usd, (item.minimum, item.expected, item.maximum)), str(item.date or "-")
        )
    table.add_row("total of known", *map(_usd, (estimate.minimum, estimate.expected, estimate.maximum)), "")
    console.print(table)
    often = f"  checkpoints of a run: {checkpoints(loaded.spec).line}"
    console.print(often, style="dim", markup=False, highlight=False, soft_wrap=True)
    for shortfall in shortfalls:
        console.print(f"  over quota: {shortfall}", style="bold red", markup=False, soft_wrap=True)
    old = _old(estimate, on)
    for title, text in (("old prices", old), ("not priced", "; ".join(map(str, estimate.not_priced)))):
        if text:
            console.print(f"  {title}: {text}", style="dim", markup=False, highlight=False, soft_wrap=True)


def of_changes(operation: str, outcome: OperationOutcome) -> None:
    """What an operation changed, or why it failed."""
    console = new_console()
    if outcome.succeeded:
        console.print(
            f"\n[bold green]{operation} done[/] in {outcome.seconds:.0f} s: {_counts(outcome)}",
            soft_wrap=True,
        )
        return
    what = "interrupted" if outcome.interrupted else "failed"
    is_planned = operation == "preview"
    counts = "" if is_planned else f": {_counts(outcome)}"
    console.print(f"\n[bold red]{operation} {what}[/] after {outcome.seconds:.0f} s{counts}", soft_wrap=True)
    _say_findings(console, outcome)
    for error in filter(None, outcome.errors):
        console.print(f"  {readable(error)}", markup=False, highlight=False, soft_wrap=True)
    if is_planned:
        console.print("  Nothing was changed.")
    else:
        console.print("  The state is consistent; run the same command again to go on from here.")


def _say_findings(console: Console, outcome: OperationOutcome) -> None:
    """What policies said in their own words; those that bind come last, next to the end of the output."""
    alike: dict[tuple[bool, str, str], list[str]] = {}
    for one in outcome.findings:
        names = alike.setdefault((one.level == "mandatory", one.policy, one.text), [])
        names += [short(one.urn)] if one.urn else []
    for binds, policy, text in sorted(alike):
        lines = [f"{'mandatory' if binds else 'advisory'}, {policy}", *text.splitlines()]
        names = alike[binds, policy, text]
        lines += [f"on {', '.join(names)}"] if names else []
        style = "bold red" if binds else "dim"
        said = "  " + "\n      ".join(lines)
        console.print(said, style=style, markup=False, highlight=False, soft_wrap=True)


def _counts(outcome: OperationOutcome) -> str:
    counts = [f"{count} {_PAST.get(kind, kind)}" for kind, count in sorted(outcome.changes.items())]
    return ", ".join(counts) or "nothing changed"


def _old(estimate: cost.CostEstimate, on: datetime.date) -> str:
    """The prices that are older than their sources allow, with their days; empty without any."""
    return ", ".join(f"{item.name} of {item.date}" for item in estimate.old(on))


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.0f}"


def _rows_of_cluster(
    loaded: stackspec.LoadedSpec, found: Mapping[str, Any], rehearsal: Rehearsal | None
) -> list[tuple[str, str]]:
    exported = outputs.parse(found)
    rows = [
        (
            "built",
            f"cluster {exported.cluster_name}, pools {', '.join(exported.pools)}, "
            f"{len(exported.teams)} team queues",
        ),
        *_rows_of_money(loaded),
    ]
    for run in (_figures(exported, run, rehearsal) for run in exported.smoke):
        rows += [("training", run.headline), ("smoke result", run.location)]
    url = rehearsal.service_url(exported.mlflow_url) if rehearsal else None
    rows.append(("MLflow", url or exported.mlflow_url))
    if exported.mlflow_way_in is not None:
        rows.append(("in browsers", str(exported.mlflow_way_in)))
    login = f"trainstack rehearse login -s {exported.stack}" if rehearsal else exported.mlflow_admin_secret
    rows.append(("MLflow login", f"shown by {login}" if rehearsal else f"secret {login}"))
    return rows


def _rows_of_jobs(loaded: stackspec.LoadedSpec, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    exported = job_outputs.parse(found)
    return [("built", job_summary.built(exported)), *_rows_of_money(loaded), *job_summary.rows(exported)]


def _rows_of_money(loaded: stackspec.LoadedSpec) -> list[tuple[str, str]]:
    today = datetime.date.today()
    estimate = cost.estimate(loaded.spec, today)
    dollars = (
        f"${_usd(estimate.minimum)} min / ${_usd(estimate.expected)} expected / ${_usd(estimate.maximum)} max"
    )
    old = _old(estimate, today)
    budget = loaded.spec.budget.monthly_usd
    return [
        ("cost per month", dollars),
        *([("old prices", old)] if old else []),
        ("not priced", ", ".join(use.name for use in estimate.not_priced)),
        (
            "budget",
            f"${budget:,.0f} a month" + (": below the expected cost" if estimate.expected > budget else ""),
        ),
    ]


def _times(rehearsal: Rehearsal, project: str, stack: str, *, verbose: bool) -> list[tuple[str, str]]:
    """How long the real deploy takes, why, and what that leaves out."""
    resources = recovery.resources(rehearsal.home / "state", project, stack)
    expected = forecast(resources, durations())
    rows = [("real deploy", expected.line), ("critical path", expected.path or "no duration is known")]
    if expected.unknown:
        left_out = f"{len(expected.unknown)} kinds of resources without a known duration"
        names = ", ".join(kind.rpartition(":")[2] for kind in expected.unknown)
        more = f": {names}" if verbose else " (--verbose lists them)"
        rows.append(("not counted", left_out + more))
    return rows


def _next_steps(console: Console, stack: str, rehearsal: Rehearsal | None, *, of_jobs: bool) -> None:
    key = "layout.machines[0]" if of_jobs else "layout.pools[0]"
    flag = " --rehearse" if rehearsal else ""
    steps = [
        (f"trainstack explain -s {stack} {key}.purchase.kind", "why a value is what it is"),
        (f"trainstack status -s {stack}{flag}", "what runs"),
        (
            f"trainstack up -s {stack}{flag} --yes",
            "after an edit of the stack file: changes only what differs",
        ),
        (f"trainstack destroy -s {stack}{flag} --yes", "leaves nothing behind"),
    ]
    if rehearsal and not of_jobs:
        fault = f"trainstack up -s {stack} --rehearse --yes --fault smoke:slow-rank=1"
        steps.insert(1, (fault, "see the gate close"))
    console.print("\n[bold]Next[/]  (commands are in .venv/bin)")
    for command, why in steps:
        console.print(f"  {command}", style="cyan", highlight=False, markup=False)
        console.print(f"      {why}", style="dim", highlight=False)


def _figures(
    exported: outputs.StackOutputs, run: outputs.ValidationRun, rehearsal: Rehearsal | None
) -> SmokeFigures:
    """The figures of a run that let the deployment go on."""
    location = run.result_uri
    try:
        said = headline(read(location, exported.region, rehearsal))
        location = str(rehearsal.local_path(location)) if rehearsal else location
    except UnreadableError as error:
        said = f"passed (the deployment would have failed otherwise); its result cannot be read: {error}"
    return SmokeFigures(f"{run.pool}: {said}", location)
