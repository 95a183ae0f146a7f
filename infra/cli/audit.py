"""`trainstack audit`: the rules of the policy pack on an exported state or a preview."""

import datetime
import hashlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:
    from policies.audit import Audit, Inputs
    from policies.resource import Resource


class Format(StrEnum):
    """How the result is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


class FailOn(StrEnum):
    """The least severity that counts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


State = Annotated[
    Path | None, typer.Option("--state", help="What `pulumi stack export --file FILE` wrote.", metavar="FILE")
]
Preview = Annotated[
    Path | None,
    typer.Option("--preview", help="What `pulumi preview --json --show-sames` wrote.", metavar="FILE"),
]
Least = Annotated[FailOn, typer.Option("--fail-on", help="Count what is as severe as this, or more.")]
Written = Annotated[
    Format,
    typer.Option("--format", help="For people, programs (every outcome), code scanning, CI, pull requests."),
]
Waivers = Annotated[
    Path | None, typer.Option("--waivers", help="Violations that somebody answers for.", metavar="FILE")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Settings and rules that differ for an environment or a client.", metavar="FILE"
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        help="A former report (json) or results.jsonl: only new violations count.",
        metavar="FILE",
    ),
]
Evidence = Annotated[
    Path | None,
    typer.Option(
        "--evidence",
        help="Keep all of it as a folder, or as FILE.zip (docs/evidence.md).",
        metavar="DIR|FILE.zip",
    ),
]
At = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--at",
        help="The time in UTC at which is judged; now, if not given.",
        formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"],
    ),
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="A stack without resources is no error.")]


def audit(
    state: State = None,
    preview: Preview = None,
    *,
    fail_on: Least = FailOn.LOW,
    format: Written = Format.TEXT,
    waivers: Waivers = None,
    config: Config = None,
    baseline: Baseline = None,
    evidence: Evidence = None,
    at: At = None,
    allow_empty: AllowEmpty = False,
) -> None:
    """Judge a stack by the rules of the policy pack (docs/policies.md), without any cloud.

    Exit codes: 0 clean, 1 internal error, 2 usage or a file that cannot be read, 3 violations, 4 nothing
    but undetermined, 5 violations whose waivers have expired and no others. Only what is as severe as
    --fail-on counts.
    """
    if (state is None) == (preview is None):
        given = None if state is None else "both"
        raise UserError([Problem("--state, --preview", given, "one of them is needed", "Name one file.")])
    from policies.evidence import written  # noqa: PLC0415 - help comes without the rules
    from policies.verdict import ExitCode  # noqa: PLC0415

    try:
        source = state or preview
        assert source
        if evidence is not None:
            written.refuse_taken(evidence)
        resources = _read(source, allow_empty, planned=preview is not None)
        kind = "preview" if preview else "state"
        files = {kind: source, "waivers": waivers, "config": config, "baseline": baseline}
        present = {what: file for what, file in files.items() if file is not None}
        found = _audited(_inputs(kind, resources, present, at, keep=evidence is not None), present, fail_on)
        if evidence is not None:
            from policies.evidence import bundle  # noqa: PLC0415 - slow to import

            written.write(evidence, bundle.files(found))
        typer.echo(_written(found, format))
    except UserError:
        raise
    except Exception as error:
        typer.echo(f"internal error: {type(error).__name__}: {error}", err=True)
        raise typer.Exit(ExitCode.INTERNAL_ERROR) from None
    raise typer.Exit(found.code)


def _read(file: Path, allow_empty: bool, *, planned: bool) -> "list[Resource]":
    from policies.sources import preview, state  # noqa: PLC0415

    read = preview.read if planned else state.read
    return read(file, allow_empty=allow_empty)


def _inputs(
    kind: str,
    resources: "list[Resource]",
    files: Mapping[str, Path],
    at: datetime.datetime | None,
    *,
    keep: bool,
) -> "Inputs":
    from policies.audit import Inputs  # noqa: PLC0415
    from policies.judge import Judge  # noqa: PLC0415

    now = (at or datetime.datetime.now(datetime.UTC)).replace(tzinfo=datetime.UTC)
    today = now.date() if at else datetime.date.today()
    judge = Judge.read(files.get("config"), files.get("waivers"), today)
    digests = {what: _digest(file) for what, file in files.items()} if keep else {}
    return Inputs(kind, now, digests, resources, judge.how, judge.waivers or ())


def _audited(inputs: "Inputs", files: Mapping[str, Path], fail_on: FailOn) -> "Audit":
    from policies import baseline  # noqa: PLC0415
    from policies.audit import Audit  # noqa: PLC0415
    from policies.judge import Judge  # noqa: PLC0415
    from policies.verdict import verdict  # noqa: PLC0415

    judge = Judge(inputs.configuration, inputs.waivers if "waivers" in files else None)
    outcomes, advice = judge.judged(inputs.resources)
    resolved = None
    if "baseline" in files:
        former = baseline.read(files["baseline"], inputs.resources)
        outcomes = former.marked(outcomes)
        resolved = former.resolved(outcomes)
    code = verdict(outcomes, fail_on.value)
    name = files[inputs.kind].name
    return Audit(name, outcomes, len(inputs.resources), code, advice, fail_on.value, resolved, inputs)


def _digest(file: Path) -> str:
    """SHA-256 of a file. Raises UserError where it cannot be read twice, as a pipe cannot."""
    if not file.is_file():
        fix = "Write it to a file first, so that evidence can name its digest."
        raise UserError([Problem(str(file), None, "is no file", fix)])
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _written(found: "Audit", format: Format) -> str:
    from policies.report import junit, markdown, outcomes, sarif, text  # noqa: PLC0415

    if format is Format.HTML:
        from policies.report import page  # noqa: PLC0415 - slow to import

        return page.document(found)
    writers = {
        Format.TEXT: text.document, Format.JSON: outcomes.document, Format.SARIF: sarif.document,
        Format.JUNIT: junit.document, Format.MARKDOWN: markdown.document,
    }  # fmt: skip
    return writers[format](found)
