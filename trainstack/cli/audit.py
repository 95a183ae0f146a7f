"""`trainstack audit`: the rules of the policy pack on a state, a preview, an account, or a cluster."""

import datetime
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.collect import Cloud, Context, Place, Project, Region

if TYPE_CHECKING:
    from policies.audit import Audit, Inputs
    from policies.coverage import Coverage
    from policies.resource import Resource
    from policies.sources.live.join import Join


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
Live = Annotated[Cloud | None, typer.Option("--live", help="Ask it now, with the credentials of this shell.")]
Snapshot = Annotated[
    Path | None, typer.Option("--snapshot", help="What `trainstack collect` wrote.", metavar="FILE")
]
ImportFile = Annotated[
    Path | None,
    typer.Option(
        "--import-file",
        help="Write what is unmanaged, for `pulumi import --file`; with a state and an account.",
        metavar="FILE",
    ),
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
Environment = Annotated[
    str | None,
    typer.Option("--environment", help="Which of the environments of the configuration.", metavar="NAME"),
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
        help="Keep all of it as a folder, or as FILE.zip (docs/how-to/evidence.md).",
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
    live: Live = None,
    snapshot: Snapshot = None,
    *,
    region: Region = None,
    project: Project = None,
    context: Context = None,
    import_file: ImportFile = None,
    fail_on: Least = FailOn.LOW,
    format: Written = Format.TEXT,
    waivers: Waivers = None,
    config: Config = None,
    environment: Environment = None,
    baseline: Baseline = None,
    evidence: Evidence = None,
    at: At = None,
    allow_empty: AllowEmpty = False,
) -> None:
    """Judge a stack, an account, or a cluster by the rules of the policy pack (docs/reference/policies.md).

    Exit codes: 0 clean, 1 internal error, 2 usage or a file that cannot be read, 3 violations, 4 nothing
    but undetermined, 5 violations whose waivers have expired and no others. Only what is as severe as
    --fail-on counts.
    """
    _refuse_other_sources(state, preview, live, snapshot)
    if import_file is not None and not (state and (live or snapshot)):
        fix = "Name --state, and --live or --snapshot."
        raise UserError([Problem("--import-file", None, "needs a state and an account", fix)])
    from policies.evidence import written  # noqa: PLC0415 - help comes without the rules
    from policies.verdict import ExitCode  # noqa: PLC0415

    try:
        if evidence is not None:
            written.refuse_taken(evidence)
            _refuse_passing(live)
        if live or snapshot:
            source = _of_account(live, Place(region, project, context), snapshot, state, allow_empty)
        else:
            source = _of_stack(state, preview, allow_empty)
        files = {**source.files, "waivers": waivers, "config": config, "baseline": baseline}
        present = {what: file for what, file in files.items() if file is not None}
        inputs = _inputs(source, present, environment, at, keep=evidence is not None)
        found = _audited(source.name, inputs, present, fail_on)
        if source.join is not None:
            found = replace(found, differences=source.join.differences)
            _write_imports(source.cloud, source.join, import_file)
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


@dataclass(frozen=True)
class _Source:
    """What is judged, and from which file."""

    kind: str
    name: str
    resources: "list[Resource]"
    coverage: "Coverage"
    files: Mapping[str, Path] = field(default_factory=dict)
    join: "Join | None" = None
    cloud: str = ""
    """Of an account or a cluster."""


def _refuse_other_sources(state: object, preview: object, live: object, snapshot: object) -> None:
    given = [one for one in (state, preview, live, snapshot) if one is not None]
    joined = state is not None and preview is None and len(given) == 2
    if len(given) != 1 and not joined:
        names, value = "--state, --preview, --live, --snapshot", "several" if given else None
        fix = "Name one; or a state, and an account to hold it against."
        raise UserError([Problem(names, value, "one of them is needed", fix)])


def _refuse_passing(live: Cloud | None) -> None:
    """What nobody keeps cannot be judged again, so it is no evidence."""
    if live:
        fix = "Run trainstack collect, and audit its --snapshot; keep both."
        raise UserError([Problem("--evidence", None, "needs a source that is kept, not --live", fix)])


def _write_imports(cloud: str, join: "Join", file: Path | None) -> None:
    """What is unmanaged; of a cluster that is not known, as its objects do not name their stack."""
    from policies.sources.document import write_whole  # noqa: PLC0415

    if file is None:
        return
    if cloud == Cloud.KUBERNETES:
        rule, fix = "a cluster does not say which stack an object is of", "Leave out --import-file."
        raise UserError([Problem("--import-file", None, rule, fix)])
    write_whole(file, join.import_file(), "Name another file.")


def _of_stack(state: Path | None, preview: Path | None, allow_empty: bool) -> _Source:
    from policies.coverage import WHOLE  # noqa: PLC0415
    from policies.sources import preview as previews  # noqa: PLC0415
    from policies.sources import state as states  # noqa: PLC0415

    kind, file, read = ("preview", preview, previews.read) if preview else ("state", state, states.read)
    assert file
    return _Source(kind, file.name, read(file, allow_empty=allow_empty), WHOLE, {kind: file})


def _of_account(
    cloud: Cloud | None,
    where: Place,
    file: Path | None,
    state: Path | None,
    allow_empty: bool,
) -> _Source:
    """An account or a cluster; with a state, as that knows it."""
    from policies.sources import state as states  # noqa: PLC0415
    from policies.sources.live import join, records  # noqa: PLC0415
    from trainstack.cli.collect import collected  # noqa: PLC0415

    managed = states.read(state, allow_empty=allow_empty) if state else []
    if cloud:
        found, files = records.account(collected(cloud, where)), {}
    else:
        assert file
        found, files = records.read(file, allow_empty=allow_empty), {"snapshot": file}
    kind, name = "snapshot" if file else "live", found.snapshot.source
    if state is None:
        return _Source(kind, name, found.resources, found.coverage, files)
    both = join.joined(managed, found)
    read = {**files, "state": state}
    return _Source(kind, name, list(both.resources), found.coverage, read, both, found.snapshot.cloud)


def _inputs(
    source: _Source,
    files: Mapping[str, Path],
    environment: str | None,
    at: datetime.datetime | None,
    *,
    keep: bool,
) -> "Inputs":
    from policies.audit import Inputs  # noqa: PLC0415
    from policies.judge import Judge  # noqa: PLC0415

    now = (at or datetime.datetime.now(datetime.UTC)).replace(tzinfo=datetime.UTC)
    today = now.date() if at else datetime.date.today()
    judge = Judge.read(files.get("config"), files.get("waivers"), today, environment)
    digests = {what: _digest(file) for what, file in files.items()} if keep else {}
    return Inputs(source.kind, now, digests, source.resources, judge.how, judge.waivers, source.coverage)


def _audited(name: str, inputs: "Inputs", files: Mapping[str, Path], fail_on: FailOn) -> "Audit":
    from policies import baseline  # noqa: PLC0415
    from policies.audit import Audit  # noqa: PLC0415
    from policies.judge import Judge  # noqa: PLC0415
    from policies.verdict import verdict  # noqa: PLC0415

    judge = Judge(inputs.configuration, inputs.waivers)
    outcomes, advice = judge.judged(inputs.resources, inputs.coverage)
    resolved = None
    if "baseline" in files:
        former = baseline.read(files["baseline"], inputs.resources)
        outcomes = former.marked(outcomes)
        resolved = former.resolved(outcomes)
    code = verdict(outcomes, fail_on.value)
    return Audit(name, outcomes, len(inputs.resources), code, advice, fail_on.value, resolved, inputs)


def _digest(file: Path) -> str:
    """SHA-256 of a file. Raises UserError where it cannot be read twice, as a pipe cannot."""
    if not file.is_file():
        fix = "Write it to a file first, so that evidence can name its digest."
        raise UserError([Problem(str(file), None, "is no file", fix)])
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
