"""Fleet commands that change nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from infra.errors import Problem, UserError
from trainstack.cli.clients.fleet import options as o
from trainstack.cli.clients.fleet.options import Conditions, choose
from trainstack.cli.output import Format, print_json, print_table

if TYPE_CHECKING:  # slow to import
    from trainstack.fleet.stacks import FleetStack


def listed(
    file: o.File = o.HERE,
    *,
    client: o.Clients = None,
    cloud: o.Clouds = None,
    environment: o.Environments = None,
    tag: o.Tags = None,
    changed_since: o.Since = "",
    form: o.Form = Format.TEXT,
) -> None:
    """List the selected stacks, and what is wrong with their entries. Runs no command and asks no cloud."""
    from trainstack.fleet.environment import problems_of  # noqa: PLC0415 - help does not need it

    chosen = choose(file, Conditions(client, cloud, environment, tag, changed_since), rehearse=False)
    rows = [
        {
            "client": one.client.name,
            "stack": one.name,
            "cloud": one.cloud,
            "region": one.region,
            "environment": one.environment,
            "account": one.account,
            "folder": one.folder,
            "backend": one.backend.url if one.backend else "",
            "tags": " ".join(one.client.tags),
        }
        for one in chosen.stacks.stacks
    ]
    found = [(name, one) for name, of_client in chosen.stacks.problems.items() for one in of_client]
    for stack in chosen.stacks.stacks:  # without a backend, it can only be rehearsed
        known = problems_of(stack, chosen.base, rehearse=stack.backend is None)
        found += [(stack.client.name, one) for one in known]
    problems = [
        {"client": name, "code": one.code, "path": one.path, "rule": one.rule, "fix": one.fix}
        for name, one in found
    ]
    problems = [one for index, one in enumerate(problems) if one not in problems[:index]]
    if form is Format.JSON:
        print_json("trainstack.fleet-list/1", {"stacks": rows, "problems": problems})
    else:
        head = ("client", "stack", "cloud", "region", "environment", "account", "tags")
        print_table(head, [[str(row[name]) for name in head] for row in rows])
        for one in problems:
            where = f"{one['client']} ({one['path']})" if one["path"] else one["client"]
            typer.echo(f"{where}: {one['rule']}. {one['fix']} [{one['code']}]", err=True)
    raise typer.Exit(1 if problems else 0)


def preview(
    file: o.File = o.HERE,
    *,
    client: o.Clients = None,
    cloud: o.Clouds = None,
    environment: o.Environments = None,
    tag: o.Tags = None,
    changed_since: o.Since = "",
    rehearse: o.Rehearse = False,
    policies: o.Policies = True,
    workers: o.Workers = None,
    fresh: o.Fresh = False,
    junit: o.Junit = None,
    page: o.Page = None,
    form: o.Form = Format.TEXT,
) -> None:
    """Preview every stack: changes, price, policy verdict."""
    conditions = Conditions(client, cloud, environment, tag, changed_since)
    reports = o.ReportFiles(form, junit, page)
    _run("preview", file, conditions, reports, workers, fresh=fresh, rehearse=rehearse, policies=policies)


def reading(command: str, help: str) -> Callable[..., None]:
    """A fleet command that runs the command of the same name for every stack."""

    def run(
        file: o.File = o.HERE,
        *,
        client: o.Clients = None,
        cloud: o.Clouds = None,
        environment: o.Environments = None,
        tag: o.Tags = None,
        changed_since: o.Since = "",
        rehearse: o.Rehearse = False,
        workers: o.Workers = None,
        fresh: o.Fresh = False,
        junit: o.Junit = None,
        page: o.Page = None,
        form: o.Form = Format.TEXT,
    ) -> None:
        if rehearse and command in _REAL:
            raise UserError([Problem("--rehearse", None, *_REAL[command], code="command-not-rehearsed")])
        conditions = Conditions(client, cloud, environment, tag, changed_since)
        reports = o.ReportFiles(form, junit, page)
        _run(command, file, conditions, reports, workers, fresh=fresh, rehearse=rehearse)

    run.__doc__ = help
    return run


_REAL = {
    "cost": ("asks no cloud", "Leave it out."),
    "validate": ("validates nodes of deployed clusters", "Leave it out; `up --rehearse` runs a validation."),
}
"""Commands without a rehearsal: rule and fix."""


def _run(
    command: str,
    file: Path,
    conditions: Conditions,
    reports: o.ReportFiles,
    workers: int | None,
    *,
    fresh: bool,
    rehearse: bool,
    policies: bool = False,
) -> None:
    from trainstack.cli.clients.fleet.execution import begin, finish  # noqa: PLC0415 - help needs none of it
    from trainstack.fleet import words  # noqa: PLC0415

    reports.require_writable()
    chosen = choose(file, conditions, rehearse=rehearse)
    stacks = chosen.stacks.stacks
    execution = begin(
        chosen,
        [command, str(policies)],
        workers=workers,
        fresh=fresh,
        limited=command != "validate",
        offline=command == "cost",
    )

    def of_stack(stack: "FleetStack") -> list[str]:
        return words.of_command(command, stack, rehearse=rehearse, policies=policies)

    work = partial(execution.runner.run, stacks, of_stack, phase=command)
    finish(execution, command, execution.attended(command, len(stacks), work), reports)
