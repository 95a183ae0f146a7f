"""`trainstack audit`: judge a stack, an account or a cluster by the rules of the policies."""

import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from infra.places import located
from policies.report.formats import Format
from policies.severity import Severity
from trainstack.cli.collect import Cloud, Context, Project, Region, collected

State = Annotated[
    Path | None,
    typer.Option("--state", help="File written by `pulumi stack export --file FILE`.", metavar="FILE"),
]
Preview = Annotated[
    Path | None,
    typer.Option("--preview", help="File written by `pulumi preview --json --show-sames`.", metavar="FILE"),
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
    Path | None,
    typer.Option("--config", help="Settings and enforcement of an environment or a client.", metavar="FILE"),
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
) -> None:
    """Judge a stack, an account or a cluster by the rules of the policies.

    Only severities of --fail-on and above count. Rules: docs/reference/policies.md.
    """
    from policies import run  # noqa: PLC0415

    take = partial(collected, live, region=region, project=project, context=context) if live else None
    sources = run.AuditSources(state, preview, snapshot, take, allow_empty)
    options = run.AuditOptions(config, environment, waivers, baseline, fail_on, at, evidence, import_file)
    found = run.audit(sources, options)
    typer.echo(run.report(found, format))
    raise typer.Exit(found.code)
