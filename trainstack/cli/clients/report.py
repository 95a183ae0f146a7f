"""`trainstack report`: a page about a stack for readers who run no command, and its numbers."""

import datetime
from pathlib import Path
from typing import Annotated

import typer

from trainstack.cli.output import Format, FormatOption, print_fields, print_json, print_lines
from trainstack.cli.stack import AnyStack, Rehearse, or_default

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="The page, a new FILE.html; FILE.json is written beside it. Default: report-STACK.html.",
        metavar="FILE.html",
    ),
]
At = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--at", help="Time of the report in UTC; default: now.", formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="Settings of the policies, as for audit.", metavar="FILE")
]
Environment = Annotated[
    str | None, typer.Option("--environment", help="One of the environments of --config.", metavar="NAME")
]
Waivers = Annotated[Path | None, typer.Option("--waivers", help="Waiver file, as for audit.", metavar="FILE")]
Drift = Annotated[
    bool,
    typer.Option(
        "--drift/--no-drift",
        help="Compare the state with the cloud: reads every resource of it, and changes none.",
    ),
]
Versions = Annotated[
    bool, typer.Option("--versions/--no-versions", help="Ask for newer versions; a rehearsal never asks.")
]
Fleet = Annotated[
    list[Path] | None,
    typer.Option(
        "--fleet",
        help="One page about many stacks, from the JSON files of their reports.",
        metavar="FILE|DIR",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a report that exists.")]


def report(
    stack: AnyStack = None,
    *,
    rehearse: Rehearse = False,
    out: Out = None,
    at: At = None,
    config: Config = None,
    environment: Environment = None,
    waivers: Waivers = None,
    drift: Drift = True,
    versions: Versions = True,
    parameters: Annotated[str, typer.Option(help="Model of the run that GPUs are compared for.")] = "7B",
    tokens: Annotated[str, typer.Option(help="Its tokens, with repetitions.")] = "500M",
    method: Annotated[str, typer.Option(help="Its method: full, lora or qlora.")] = "lora",
    fleet: Fleet = None,
    force: Force = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write a page about a stack: architecture, data, cost, GPUs, validation, policies, operation.

    The page is one file that needs no network; the file beside it has every number. A part that cannot be
    made says so on the page. Where the state cannot be read, the page is written and the exit code is that
    of `status`. Changes nothing.
    """
    from infra.engine.golang import SetupError  # noqa: PLC0415
    from infra.exit_codes import ExitCode  # noqa: PLC0415
    from trainstack.cli.clients.collected import RunAsked, Wanted, collect  # noqa: PLC0415
    from trainstack.cli.operations.policy_files import PolicyFiles  # noqa: PLC0415
    from trainstack.dossier import files  # noqa: PLC0415
    from trainstack.dossier.document import document  # noqa: PLC0415

    if fleet:
        _about_fleet(fleet, out or Path("report-fleet.html"), at, force=force, as_json=form is Format.JSON)
        return
    stack = or_default(stack)
    page = out or Path(f"report-{stack}.html")
    files.check(page, force=force)
    policies = PolicyFiles(config, environment, waivers)
    question = RunAsked(parameters, tokens, method)
    wanted = Wanted(stack, rehearse, at, policies, drift, versions, question)
    facts = collect(wanted)
    made = document(facts)
    beside = files.write(page, made)
    if form is Format.JSON:
        print_json(str(made["schema"]), {key: value for key, value in made.items() if key != "schema"})
    else:
        print_fields([("page", str(page)), ("numbers", str(beside))])
    if facts.state == "unknown":
        print_lines(["the state cannot be read:", f"  {facts.unread}"], err=True)
        raise typer.Exit(ExitCode.FAILED if isinstance(facts.unread, SetupError) else ExitCode.USAGE)


def _about_fleet(
    given: list[Path], page: Path, at: datetime.datetime | None, *, force: bool, as_json: bool
) -> None:
    """Write one page about the stacks of reports."""
    from trainstack.dossier import files, fleet  # noqa: PLC0415
    from trainstack.dossier.html.page import fleet_page  # noqa: PLC0415

    files.check(page, force=force)
    now = at or datetime.datetime.now(datetime.UTC)
    made = fleet.document(fleet.read(given), now)
    beside = files.write(page, made, fleet_page)
    if as_json:
        print_json(str(made["schema"]), {key: value for key, value in made.items() if key != "schema"})
        return
    print_fields([("page", str(page)), ("numbers", str(beside))])
