"""Entry point of the policies: run an audit from the command line or from any other program.

from pathlib import Path
from policies.run import AuditOptions, AuditSources, audit, report

result = audit(AuditSources(state=Path("state.json")), AuditOptions(fail_on="high"))
violations = [one for one in result.outcomes if one.result == "fail"]
sarif, exit_code = report(result, "sarif"), int(result.code)
"""

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from infra.errors import Problem, UserError
from policies.audit import Audit, Inputs
from policies.coverage import WHOLE, Coverage
from policies.exit_codes import AuditExitCode, exit_code
from policies.judge import Judge
from policies.report.formats import Format, report
from policies.resource import Resource
from policies.severity import Severity

if TYPE_CHECKING:
    from policies.sources.live.join import Join
    from policies.sources.live.records import LiveAccount
    from policies.sources.live.snapshot import Snapshot

__all__ = ["Audit", "AuditExitCode", "AuditOptions", "AuditSources", "Format", "Severity", "audit", "report"]


@dataclass(frozen=True)
class AuditSources:
    """Source to audit: exactly one, or a state together with an account (`snapshot` or `live`)."""

    state: Path | None = None
    """File written by `pulumi stack export --file FILE`."""
    preview: Path | None = None
    """File written by `pulumi preview --json --show-sames`."""
    snapshot: Path | None = None
    """File written by `trainstack collect`."""
    live: "Callable[[], Snapshot] | None" = None
    """Takes a snapshot of an account or a cluster now, after all arguments were checked."""
    allow_empty: bool = False
    """Accept a stack without resources."""


@dataclass(frozen=True)
class AuditOptions:
    """Settings of an audit, and files that it writes besides its report."""

    config: Path | None = None
    """Settings and enforcement of an environment or a client."""
    environment: str | None = None
    """One of the environments of `config`."""
    waivers: Path | None = None
    baseline: Path | None = None
    """JSON report or results.jsonl of a former audit: only new violations count."""
    fail_on: Severity = "low"
    """Least severity that counts."""
    at: datetime.datetime | None = None
    """Time of the audit in UTC; now without one."""
    evidence: Path | None = None
    """New folder, or new file that ends with .zip, for the evidence bundle."""
    import_file: Path | None = None
    """File to write for `pulumi import --file`: unmanaged resources of the account."""


_DEFAULTS = AuditOptions()


def audit(sources: AuditSources, options: AuditOptions = _DEFAULTS) -> Audit:
    """Judge a stack, an account or a cluster: outcomes after waivers and baseline, with the exit code.

    Raises UserError for arguments that contradict each other and for files that cannot be read or writer.
    """
    _check(sources, options)
    source = _read(sources)
    given = {"waivers": options.waivers, "config": options.config, "baseline": options.baseline}
    files = {**source.files, **{name: file for name, file in given.items() if file is not None}}
    now = (options.at or datetime.datetime.now(datetime.UTC)).replace(tzinfo=datetime.UTC)
    today = now.date() if options.at else datetime.date.today()
    judge = Judge.read(options.config, options.waivers, today, options.environment)
    digests = {name: _digest(file) for name, file in files.items()} if options.evidence else {}
    inputs = Inputs(source.kind, now, digests, source.resources, judge, source.coverage)
    found = _judged(source.name, inputs, options)
    if source.join is not None:
        found = replace(found, differences=source.join.differences)
        _write_imports(source, options.import_file)
    if options.evidence is not None:
        from policies.evidence import bundle, writer  # noqa: PLC0415 - slow to import

        writer.write(options.evidence, bundle.files(found))
    return found


@dataclass(frozen=True)
class _Source:
    kind: str
    name: str
    resources: Sequence[Resource]
    coverage: Coverage = WHOLE
    files: Mapping[str, Path] = field(default_factory=dict)
    join: "Join | None" = None
    cloud: str = ""
    """Of an account or a cluster."""


def _check(sources: AuditSources, options: AuditOptions) -> None:
    """Raise UserError for arguments that contradict each other. Reads no source."""
    accounts = [one for one in (sources.snapshot, sources.live) if one is not None]
    stacks = [one for one in (sources.state, sources.preview) if one is not None]
    joined = sources.state is not None and sources.preview is None and len(accounts) == 1
    if len(accounts) + len(stacks) != 1 and not joined:
        names, value = "--state, --preview, --live, --snapshot", "several" if accounts or stacks else None
        fix = "Name one; or a state, and an account to compare it with."
        raise UserError([Problem(names, value, "one of them is needed", fix, code="audit-needs-one-source")])
    if options.import_file is not None and not joined:
        rule, fix = "needs a state and an account", "Name --state, and --live or --snapshot."
        raise UserError([Problem("--import-file", None, rule, fix, code="import-file-needs-account")])
    if options.evidence is not None:
        from policies.evidence import writer  # noqa: PLC0415

        writer.check_new(options.evidence)
        if sources.live is not None:  # without the file, the audit cannot be repeated
            rule, fix = (
                "needs a source that is kept, not --live",
                "Run trainstack collect, and audit its --snapshot; keep both.",
            )
            raise UserError([Problem("--evidence", None, rule, fix, code="evidence-needs-kept-source")])


def _read(sources: AuditSources) -> _Source:
    from policies.sources import preview, state  # noqa: PLC0415 - each is needed for some sources only

    managed: Sequence[Resource] = []
    files: dict[str, Path] = {}
    if sources.preview is not None:
        resources = preview.read(sources.preview, allow_empty=sources.allow_empty)
        return _Source("preview", sources.preview.name, resources, files={"preview": sources.preview})
    if sources.state is not None:
        managed, files = state.read(sources.state, allow_empty=sources.allow_empty), {"state": sources.state}
        if sources.snapshot is None and sources.live is None:
            return _Source("state", sources.state.name, managed, files=files)
    account = _account(sources)
    kind, name, cloud = "live", account.snapshot.source, account.snapshot.cloud
    if sources.snapshot is not None:
        kind, files = "snapshot", {"snapshot": sources.snapshot, **files}
    if sources.state is None:
        return _Source(kind, name, account.resources, account.coverage, files)
    from policies.sources.live import join  # noqa: PLC0415

    both = join.joined(managed, account)
    return _Source(kind, name, list(both.resources), account.coverage, files, both, cloud)


def _account(sources: AuditSources) -> "LiveAccount":
    from policies.sources.live import records  # noqa: PLC0415 - slow to import

    if sources.live is not None:
        return records.account(sources.live())
    assert sources.snapshot is not None
    return records.read(sources.snapshot, allow_empty=sources.allow_empty)


def _judged(name: str, inputs: Inputs, options: AuditOptions) -> Audit:
    outcomes, advice = inputs.judge.judged(inputs.resources, inputs.coverage)
    resolved = None
    if options.baseline is not None:
        from policies import baseline  # noqa: PLC0415

        former = baseline.read(options.baseline, inputs.resources)
        outcomes = former.marked(outcomes)
        resolved = former.resolved(outcomes)
    code = exit_code(outcomes, options.fail_on)
    return Audit(name, outcomes, len(inputs.resources), code, advice, options.fail_on, resolved, inputs)


def _write_imports(source: _Source, file: Path | None) -> None:
    from policies.sources.files import write_atomically  # noqa: PLC0415

    if file is None or source.join is None:
        return
    if source.cloud == "kubernetes":
        rule, fix = "objects of a cluster do not name their stack", "Leave out --import-file."
        raise UserError([Problem("--import-file", None, rule, fix, code="import-file-without-stack")])
    write_atomically(file, source.join.import_file(), "Name another file.")


def _digest(file: Path) -> str:
    """SHA-256 of a file. Raises UserError for a pipe, which cannot be read twice."""
    if not file.is_file():
        fix = "Write it to a file first, so that evidence can name its digest."
        raise UserError([Problem(str(file), None, "is no file", fix, code="evidence-source-no-file")])
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
