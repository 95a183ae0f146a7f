"""Summaries of operations that have ended; that of `up` fits 12 lines."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console

from infra import cost, stackspec
from infra.catalog.durations import durations
from infra.clouds import sessions
from infra.engine import recovery
from infra.engine.console import new_console
from infra.engine.progress import short
from infra.engine.stack import EngineStack, OperationOutcome
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from infra.outputs import manager as manager_outputs
from infra.outputs import slurm as slurm_outputs
from infra.places import CHECKOUT
from rehearsal.client import Rehearsal
from smoke_training.verdict_record import readable
from trainstack import held_addresses
from trainstack.cli.operations import job_summary
from trainstack.cli.operations.results import UnreadableError, headline, read
from trainstack.cli.output import print_fields
from trainstack.forecast import forecast

_PAST = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "same": "unchanged",
}


def of_deployment(
    loaded: stackspec.LoadedSpec,
    engine: EngineStack,
    outcome: OperationOutcome,
    rehearsal: Rehearsal | None,
    *,
    verbose: bool = False,
) -> None:
    """Print what was built, its price, its validation, where services are, and the next commands.

    With `verbose`, also old prices, what has no price, the critical path and what the forecast leaves out.
    """
    console = new_console()
    if not outcome.succeeded:
        of_changes("up", outcome)
        return
    print_findings(console, outcome)
    found = {key: output.value for key, output in engine.outputs().items()}
    rows = _rows(found)
    fields = list(rows(loaded, found, rehearsal, verbose=verbose))
    stack = loaded.spec.name
    where = "rehearsed in the emulated clouds" if rehearsal else "deployed"
    done = f"[bold green]Stack {stack} is {where}[/] in {outcome.seconds:.0f} s: {counts(outcome)}"
    console.print(f"\n{done}", soft_wrap=True)
    if rehearsal:
        fields += _times(rehearsal, engine.project, stack, verbose=verbose)
    print_fields([(f"  {name}", text) for name, text in fields], width=17)
    _next_steps(console, stack, rehearsal, in_pods=rows is _cluster_fields)


def _rows(found: Mapping[str, Any]) -> Callable[..., Iterator[tuple[str, str]]]:
    """Rows for a stack, by the kind of its outputs."""
    if job_outputs.is_of_jobs(found):
        return _job_fields
    if manager_outputs.is_of_manager(found):
        return _manager_fields
    return _slurm_fields if slurm_outputs.is_of_slurm(found) else _cluster_fields


def _slurm_fields(
    _loaded: stackspec.LoadedSpec, found: Mapping[str, Any], _rehearsal: Rehearsal | None, *, verbose: bool
) -> Iterator[tuple[str, str]]:
    """Rows of a Slurm system and of its validations, which passed."""
    del verbose
    made = slurm_outputs.parse(found)
    partitions = ", ".join(one.name for one in made.partitions)
    yield "built", f"Slurm {made.cluster_id}, partitions {partitions}, accounts {', '.join(made.accounts)}"
    for one in made.smoke:
        yield "smoke result", one.result_uri


def of_changes(operation: str, outcome: OperationOutcome) -> None:
    """Print what an operation changed, or why it failed."""
    console = new_console()
    if outcome.succeeded:
        console.print(
            f"\n[bold green]{operation} done[/] in {outcome.seconds:.0f} s: {counts(outcome)}", soft_wrap=True
        )
        return
    what = "interrupted" if outcome.interrupted else "failed"
    is_planned = operation == "preview"
    changed = "" if is_planned else f": {counts(outcome)}"
    console.print(f"\n[bold red]{operation} {what}[/] after {outcome.seconds:.0f} s{changed}", soft_wrap=True)
    print_findings(console, outcome)
    for error in filter(None, outcome.errors):
        console.print(f"  {readable(error)}", markup=False, highlight=False, soft_wrap=True)
    if is_planned:
        console.print("  Nothing was changed.")
    else:
        for fix in sessions.ended(outcome.errors):
            console.print(f"  The login ended. {fix}", markup=False, highlight=False, soft_wrap=True)
        for fix in held_addresses.explained(outcome.errors):
            console.print(f"  {fix}", markup=False, highlight=False, soft_wrap=True)
        console.print("  The state is consistent; run the same command again to go on from here.")


def print_findings(console: Console, outcome: OperationOutcome) -> None:
    """Print what policies report; mandatory ones last, next to the end of the output."""
    alike: dict[tuple[bool, str, str], list[str]] = {}
    for one in outcome.findings:
        names = alike.setdefault((one.level == "mandatory", one.policy, one.text), [])
        names += [short(one.urn)] if one.urn else []
    for mandatory, policy, text in sorted(alike):
        lines = [f"{'mandatory' if mandatory else 'advisory'}, {policy}", *text.splitlines()]
        names = alike[mandatory, policy, text]
        lines += [f"on {', '.join(names)}"] if names else []
        style = "bold red" if mandatory else "dim"
        paragraph = "  " + "\n      ".join(lines)
        console.print(paragraph, style=style, markup=False, highlight=False, soft_wrap=True)


def counts(outcome: OperationOutcome) -> str:
    """Changed resources by operation, such as `3 created, 1 replaced`."""
    counts = [f"{count} {_PAST.get(kind, kind)}" for kind, count in sorted(outcome.changes.items())]
    return ", ".join(counts) or "nothing changed"


def old_prices(estimate: cost.CostEstimate, on: datetime.date) -> str:
    """The items whose price is older than its source allows, with their days; empty without any."""
    return ", ".join(f"{item.name} of {item.date}" for item in estimate.old(on))


def usd(amount: float | None) -> str:
    """An amount in whole dollars."""
    return "unknown" if amount is None else f"{amount:,.0f}"


def clusters_of_manager(exported: manager_outputs.ManagerOutputs) -> str:
    """The clusters that get jobs of a manager, and those that get none, with the reason."""
    connected = f"connected to {', '.join(exported.connected) or 'none'}"
    if not exported.away:
        return connected
    away = ", ".join(exported.away)
    return f"{connected}; not to {away}: open by layout.clusters[].api_access, or not deployed"


def _manager_fields(
    loaded: stackspec.LoadedSpec, found: Mapping[str, Any], _: Rehearsal | None, *, verbose: bool
) -> Iterator[tuple[str, str]]:
    exported = manager_outputs.parse(found)
    yield "built", f"manager {exported.cluster_name}, {len(exported.teams)} team queues"
    yield "clusters", clusters_of_manager(exported)
    yield from _money_fields(loaded, verbose=verbose)


def _cluster_fields(
    loaded: stackspec.LoadedSpec, found: Mapping[str, Any], rehearsal: Rehearsal | None, *, verbose: bool
) -> Iterator[tuple[str, str]]:
    exported = outputs.parse(found)
    pools = ", ".join(exported.pools)
    yield "built", f"cluster {exported.cluster_name}, pools {pools}, {len(exported.teams)} team queues"
    yield from _money_fields(loaded, verbose=verbose)
    if verbose or len(exported.smoke) == 1:
        for run in exported.smoke:
            yield from _smoke_fields(exported, run, rehearsal)
    elif exported.smoke:
        yield "training", f"passed on pools {', '.join(str(run.pool) for run in exported.smoke)}"
    url = rehearsal.service_url(exported.mlflow_url) if rehearsal else None
    addresses = (url, exported.mlflow_way_in or (None if url else exported.mlflow_url))
    yield "MLflow", "; deployed: ".join(str(one) for one in addresses if one)
    login = f"trainstack rehearse login -s {exported.stack}" if rehearsal else exported.mlflow_admin_secret
    yield "MLflow login", f"run `{login}`" if rehearsal else f"secret {login}"


def _job_fields(
    loaded: stackspec.LoadedSpec, found: Mapping[str, Any], _: Rehearsal | None, *, verbose: bool
) -> Iterator[tuple[str, str]]:
    exported = job_outputs.parse(found)
    yield "built", job_summary.built(exported)
    yield from _money_fields(loaded, verbose=verbose)
    yield from job_summary.fields(exported, verbose=verbose)


def budget_of(loaded: stackspec.LoadedSpec) -> str:
    """Name of the stack whose budget it is: of a cluster, the large stack, unless it has a part."""
    member = loaded.member
    return loaded.spec.name if member is None or member.has_budget else member.of.name


def budget_line(loaded: stackspec.LoadedSpec, estimate: cost.CostEstimate, today: datetime.date) -> str:
    """The budget of a stack; of a cluster, with the stack that it belongs to, and the part of the cluster."""
    budget, member = f"${loaded.spec.budget.monthly_usd:,.0f}", loaded.member
    if member is None:
        return budget
    if member.has_budget:
        whole = f"${member.of.budget.monthly_usd:,.0f}"
        return f"{budget} of this cluster, a part of {whole} of the whole stack {member.of.name}"
    expected = cost.estimate(member.of, today).expected
    part = f", of which {estimate.expected / expected:.0%} in this cluster" if expected else ""
    return (
        f"{budget} of the whole stack {member.of.name}, which is expected to cost ${expected:,.0f}{part}; a "
        "cluster has no budget of its own"
    )


def _money_fields(loaded: stackspec.LoadedSpec, *, verbose: bool) -> Iterator[tuple[str, str]]:
    today = datetime.date.today()
    estimate = cost.estimate(loaded.spec, today)
    budget = budget_line(loaded, estimate, today)
    below = ", below the expected cost" if estimate.expected > loaded.spec.budget.monthly_usd else ""
    region = "their regions" if loaded.spec.layout.several else loaded.spec.region
    yield "cost per month", f"{estimate.line(region)}; budget {budget}{below}"
    if verbose:
        if old := old_prices(estimate, today):
            yield "old prices", old
        yield "not priced", ", ".join(use.name for use in estimate.not_priced)


def _smoke_fields(
    exported: outputs.StackOutputs, run: outputs.ValidationRun, rehearsal: Rehearsal | None
) -> Iterator[tuple[str, str]]:
    location = run.result_uri
    try:
        text = headline(read(location, exported.region, rehearsal))
        location = str(rehearsal.local_path(location)) if rehearsal else location
    except UnreadableError as error:
        text = f"passed (else the deployment had failed); its result cannot be read: {error}"
    yield "training", f"{run.pool}: {text}"
    yield "smoke result", location


def _times(rehearsal: Rehearsal, project: str, stack: str, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """Duration of a real deployment; with `verbose`, its critical path and what it leaves out."""
    resources = recovery.resources(rehearsal.home / "state", project, stack)
    expected = forecast(resources, durations())
    yield "real deploy", expected.line
    if not verbose:
        return
    yield "critical path", expected.path or "no duration is known"
    if expected.unknown:
        names = ", ".join(kind.rpartition(":")[2] for kind in expected.unknown)
        yield "not counted", f"{len(expected.unknown)} kinds of resources without a known duration: {names}"


def _next_steps(console: Console, stack: str, rehearsal: Rehearsal | None, *, in_pods: bool) -> None:
    """Commands to run now; faults of the validation are of ranks in pods."""
    flag = " --rehearse" if rehearsal else ""
    steps = [f"trainstack status -s {stack}{flag}", f"trainstack destroy -s {stack}{flag} --yes"]
    if rehearsal and in_pods:
        steps[0] = f"trainstack up -s {stack} --rehearse --yes --fault smoke:slow-rank=1"
    where = "commands are in .venv/bin; " if CHECKOUT else ""
    console.print(f"[bold]Next[/]  ({where}`up --verbose` shows more)")
    for command in steps:
        console.print(f"  {command}", style="cyan", highlight=False, markup=False)
