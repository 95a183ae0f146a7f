"""`trainstack fleet up`: one question about all previews, then deployments in waves."""

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.clients.fleet import options as o
from trainstack.cli.clients.fleet.options import Conditions, ReportFiles, choose
from trainstack.cli.output import Format, print_lines, print_table, require_terminal

if TYPE_CHECKING:  # slow to import
    from trainstack.fleet.deployment import DeploymentPlan

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Deploy without confirmation.")]
Waves = Annotated[
    str,
    typer.Option(
        "--waves", metavar="SIZES", help="Sizes of the first waves, such as 1,5; clients tagged canary first."
    ),
]
StopAfter = Annotated[
    int, typer.Option("--stop-after", min=1, help="Number of failures after which nothing more is started.")
]


def up(
    file: o.File = o.HERE,
    *,
    client: o.Clients = None,
    cloud: o.Clouds = None,
    environment: o.Environments = None,
    tag: o.Tags = None,
    changed_since: o.Since = "",
    rehearse: o.Rehearse = False,
    yes: Yes = False,
    waves: Waves = "1",
    stop_after: StopAfter = 1,
    policies: o.Policies = True,
    workers: o.Workers = None,
    fresh: o.Fresh = False,
    junit: o.Junit = None,
    page: o.Page = None,
    form: o.Form = Format.TEXT,
) -> None:
    """Preview every stack, ask once, and deploy in waves exactly what was shown."""
    from trainstack.cli.clients.fleet.execution import begin, finish  # noqa: PLC0415 - help needs none of it
    from trainstack.fleet.deployment import deploy, preview  # noqa: PLC0415
    from trainstack.fleet.waves import sizes  # noqa: PLC0415

    reports = ReportFiles(form, junit, page)
    reports.require_writable()
    first = sizes(waves)
    if not yes:
        _require_question(form)
    conditions = Conditions(client, cloud, environment, tag, changed_since)
    chosen = choose(file, conditions, rehearse=rehearse)
    stacks = chosen.stacks.stacks
    execution = begin(chosen, ["up", str(policies)], workers=workers, fresh=fresh)
    runner = execution.runner
    plan = execution.attended("preview", len(stacks), lambda: preview(runner, stacks, policies=policies))
    outcomes = [plan.previews[one.id] for one in stacks]
    if plan.changing and not runner.stopped.is_set():
        with redirect_stdout(sys.stderr):
            _show(plan, first)
            if not yes:
                where = "the emulated clouds" if rehearse else "the real clouds"
                typer.confirm(f"Deploy {len(plan.changing)} stacks in {where}?", abort=True)
        outcomes = execution.attended(
            "up", len(plan.changing), lambda: deploy(runner, plan, first, stop_after, policies=policies)
        )
    finish(execution, "up", outcomes, reports)


def _require_question(form: Format) -> None:
    if form is Format.JSON:
        rule, fix = "asks no question", "Add --yes."
        raise UserError([Problem("--format", "json", rule, fix, "--yes", code="json-needs-yes")])
    require_terminal()


def _show(plan: "DeploymentPlan", first: tuple[int, ...]) -> None:
    """The summary that is confirmed."""
    from trainstack.fleet.report.document import headline, price_of  # noqa: PLC0415
    from trainstack.fleet.waves import waves  # noqa: PLC0415

    rows = []
    for number, wave in enumerate(waves(plan.changing, first), start=1):
        for one in wave:
            preview = plan.previews[one.id]
            price = price_of(preview) or {}
            text = headline("preview", preview)
            rows.append(
                [str(number), one.client.name, one.name, text, f"{price.get('expected_usd', 0):,.0f}"]
            )
    amount = "expected $/month"
    print_table(("wave", "client", "stack", "would change", amount), rows, right=("wave", amount))
    totals = ", ".join(f"{count} {name}" for name, count in sorted(plan.totals.items()))
    prices = [price_of(plan.previews[one.id]) or {} for one in plan.changing]
    typer.echo(
        f"in all: {totals}; ${sum(one.get('expected_usd', 0) for one in prices):,.0f} expected per month"
    )
    ends = [
        f"{one.id}: {end['kind']}: {end['text']}"
        for one in plan.changing
        for end in (plan.previews[one.id].result or {}).get("ends") or ()
    ]
    print_lines(f"  {line}" for line in ends)
    if plan.unchanged:
        typer.echo(f"nothing to change: {', '.join(one.id for one in plan.unchanged)}")
    for outcome in plan.left_out:
        print_lines([f"left out: {outcome.id}, {outcome.state.value}: {headline('preview', outcome)}"])
