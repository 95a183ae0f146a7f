"""Fleet commands that change nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from trainstack.cli.clients.fleet import options as o
from trainstack.cli.clients.fleet.options import Conditions, choose
from trainstack.cli.output import Format, print_json, print_table

if TYPE_CHECKING:
    from trainstack.cli.clients.fleet.execution import Reports

Policies = Annotated[
    bool, typer.Option("--policies/--no-policies", help="Judge each preview by the policies of the package.")
]


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
    """List the selected stacks; no command is run and no cloud asked."""
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
    problems = [
        {"client": name, "code": one.code, "path": one.path, "rule": one.rule, "fix": one.fix}
        for name, found in chosen.stacks.problems.items()
        for one in found
    ]
    if form is Format.JSON:
        print_json("trainstack.fleet-list/1", {"stacks": rows, "problems": problems})
    else:
        head = ("client", "stack", "cloud", "region", "environment", "account", "tags")
        print_table(head, [[str(row[name]) for name in head] for row in rows])
        for one in problems:
            typer.echo(f"{one['client']}: {one['rule']}. {one['fix']} [{one['code']}]", err=True)
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
    policies: Policies = True,
    workers: o.Workers = None,
    fresh: o.Fresh = False,
    junit: o.Junit = None,
    page: o.Page = None,
    form: o.Form = Format.TEXT,
) -> None:
    """Preview every stack: changes, price, policy verdict."""
    from trainstack.cli.clients.fleet.execution import Reports  # noqa: PLC0415 - help needs none of it

    chosen = choose(file, Conditions(client, cloud, environment, tag, changed_since), rehearse=rehearse)
    _run(
        chosen,
        preview_words(policies=policies, rehearse=rehearse),
        Reports(form, junit, page),
        workers,
        fresh,
    )


def preview_words(*, policies: bool, rehearse: bool) -> list[str]:
    """The words of the preview of a stack."""
    words = ["preview", "--format", "json"]
    words += ["--policy-pack", ".trainstack/policies"] if policies else []
    return [*words, "--rehearse"] if rehearse else words


def _run(
    chosen: o.Chosen, words: Sequence[str], reports: "Reports", workers: int | None, fresh: bool
) -> None:
    from trainstack.cli.clients.fleet.execution import executing, finish  # noqa: PLC0415

    reports.require_writable()
    with executing(chosen, words, workers=workers, fresh=fresh) as execution:
        outcomes = execution.attended(
            lambda: execution.runner.run(chosen.stacks.stacks, lambda _: words, phase=words[0])
        )
    finish(execution, words[0], outcomes, reports)
