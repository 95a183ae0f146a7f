"""`trainstack audit`: judge a stack, an account or a cluster by the rules of the policies."""

import datetime
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from infra.errors import Problem, UserError
from infra.places import located
from policies.report.formats import Format
from policies.severity import Severity
from trainstack.cli.collect import Cloud, Context, Project, Region, collected
from trainstack.cli.stack import Rehearse

State = Annotated[
    Path | None,
    typer.Option("--state", help="File written by `pulumi stack export --file FILE`.", metavar="FILE"),
]
OfStack = Annotated[
    str,
    typer.Option(
        "--stack",
        "-s",
        help="Read the state of this stack from its backend; with --preview DIR, the project's stack.",
        metavar="NAME",
    ),
]
Preview = Annotated[
    Path | None,
    typer.Option(
        "--preview",
        help="File written by `pulumi preview --json --show-sames`, or a Pulumi project to preview in its "
        "rehearsal.",
        metavar="FILE|DIR",
    ),
]
Live = Annotated[
    Cloud | None, typer.Option("--live", help="Read it now, with the credentials of this shell.")
]
Snapshot = Annotated[
    Path | None, typer.Option("--snapshot", help="File written by `trainstack collect`.", metavar="FILE")
]
ImportFile = Annotated[
    Path | None,
    typer.Option(
        "--import-file",
        help="Write unmanaged resources for `pulumi import --file`; needs a state and an account.",
        metavar="FILE",
    ),
]
Least = Annotated[Severity, typer.Option("--fail-on", help="Least severity that counts.")]
Written = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        help="Report format: text and html for people, json for programs (every outcome), sarif for code"
        " scanning, junit for CI, markdown for pull requests.",
    ),
]
Waivers = Annotated[Path | None, typer.Option("--waivers", help="Waiver file.", metavar="FILE")]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        help="Settings and enforcement of an environment or a client; by default those of the folder that "
        "name the stack of --stack. With --preview DIR, also a setting of the project.",
        metavar="FILE|KEY=VALUE",
    ),
]
Environment = Annotated[
    str | None,
    typer.Option("--environment", help="One of the environments of the configuration.", metavar="NAME"),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline", help="Former report (json) or results.jsonl: only new violations count.", metavar="FILE"
    ),
]
Evidence = Annotated[
    Path | None,
    typer.Option(
        "--evidence",
        help=located("Write an evidence bundle, as a folder or as FILE.zip (docs/how-to/evidence.md)."),
        metavar="DIR|FILE.zip",
    ),
]
At = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--at", help="Time of the audit in UTC; default: now.", formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]
    ),
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Accept a stack without resources.")]


def audit(
    state: State = None,
    preview: Preview = None,
    live: Live = None,
    snapshot: Snapshot = None,
    *,
    region: Region = None,
    project: Project = None,
    context: Context = None,
    import_file: ImportFile = None,
    fail_on: Least = "low",
    format: Written = "text",
    waivers: Waivers = None,
    config: Config = None,
    environment: Environment = None,
    baseline: Baseline = None,
    evidence: Evidence = None,
    at: At = None,
    allow_empty: AllowEmpty = False,
    stack: OfStack = "",
    rehearse: Rehearse = False,
) -> None:
    """Judge a stack, an account or a cluster by the rules of the policies.

    Only severities of --fail-on and above count. Rules: docs/reference/policies.md.
    """
    from policies import run  # noqa: PLC0415

    take = partial(collected, live, region=region, project=project, context=context) if live else None
    settings, policy = _configured(config or (), preview)
    chosen = _policy_files(policy, environment, waivers, "" if preview else stack)
    options = run.AuditOptions(*chosen, baseline, fail_on, at, evidence, import_file)
    with ExitStack() as opened:
        of_project = preview is not None and preview.is_dir()
        if preview is not None and stack and not of_project:
            rule, fix = (
                "is the stack of a project, not of a file",
                "Leave it out, or name the project's folder.",
            )
            raise UserError([Problem("--stack", stack, rule, fix, "--preview", code="option-conflict")])
        file = opened.enter_context(_state_file(state, "" if of_project else stack, rehearse=rehearse))
        if preview is not None and of_project:
            preview = _previewed(preview, stack, settings, opened, evidence)
        found = run.audit(run.AuditSources(file, preview, snapshot, take, allow_empty), options)
    typer.echo(run.report(found, format))
    raise typer.Exit(found.code)


def _policy_files(
    config: Path | None, environment: str | None, waivers: Path | None, stack: str
) -> tuple[Path | None, str | None, Path | None]:
    """The given files; for a stack, what is not given is that of its folder. Says which are taken."""
    if not stack:
        return config, environment, waivers
    from trainstack.cli.operations.policy_files import PolicyFiles, of_stack  # noqa: PLC0415

    given = PolicyFiles(config, environment, waivers)
    found = of_stack(given, stack)
    if found.config != given.config:
        typer.echo(f"settings: {found.config}, environment {found.environment}", err=True)
    if found.waivers != given.waivers:
        typer.echo(f"waivers: {found.waivers}", err=True)
    return found.config, found.environment, found.waivers


def _configured(given: Sequence[str], preview: Path | None) -> tuple[list[str], Path | None]:
    """Settings of the previewed project, and the file of the policies.

    Raises UserError for a setting without a project, and for a second file.
    """
    of_project = preview is not None and preview.is_dir()
    settings = [one for one in given if (of_project or "=" in one) and not Path(one).exists()]
    files = [one for one in given if one not in settings]
    rule, fix = "is a setting of a project", "Add --preview DIR, or name a file that exists."
    problems = [
        Problem("--config", one, rule, fix, code="option-missing") for one in settings if not of_project
    ]
    rule, fix = "is a second file", "Name one file."
    problems += [Problem("--config", one, rule, fix, code="option-conflict") for one in files[1:]]
    if problems:
        raise UserError(problems)
    return settings, Path(files[0]) if files else None


def _previewed(
    project: Path, stack: str, settings: Sequence[str], opened: ExitStack, evidence: Path | None
) -> Path:
    """A file with the preview of a project, as long as `opened`."""
    if evidence is not None:  # without the file, the audit cannot be repeated
        rule, fix = "needs a source that is kept", "Write the preview to a file, and pass that."
        raise UserError([Problem("--evidence", None, rule, fix, code="evidence-needs-kept-source")])
    from trainstack.cli.operations.project_preview import preview_file  # noqa: PLC0415 - slow to import

    return opened.enter_context(preview_file(project, stack, settings))


@contextmanager
def _state_file(state: Path | None, stack: str, *, rehearse: bool) -> Iterator[Path | None]:
    """The file with the state: the given one, or that of a stack while the audit runs, secrets encrypted."""
    if not stack:
        if rehearse:
            rule, fix = "is an option for --stack", "Add --stack NAME."
            raise UserError([Problem("--rehearse", None, rule, fix, code="option-missing")])
        yield state
        return
    if state:
        rule, fix = "names a state, too", "Leave out one of the two."
        raise UserError([Problem("--stack", stack, rule, fix, "--state", code="option-conflict")])
    from trainstack.cli.operations.session import open_engine  # noqa: PLC0415 - slow to import

    engine, _ = open_engine(stack, rehearse=rehearse)
    with tempfile.TemporaryDirectory() as folder:  # only its owner can read it
        path = Path(folder, f"{stack}.json")
        path.write_text(engine.exported(), encoding="utf-8")
        yield path
