"""Facts for a report on a stack, from its state, its validation, its policies and its cloud.

What cannot be read is a gap with its reason, so that a report can be made of every stack that has a file.
"""

import datetime
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.engine.golang import SetupError
from infra.engine.plan import DriftStep, RefreshPlan
from infra.engine.progress import watched
from infra.engine.stack import EngineStack
from infra.errors import Problem, UserError
from infra.gate import Gate, gates
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from infra.outputs import manager as manager_outputs
from infra.outputs import slurm as slurm_outputs
from infra.stackspec.load import CONFIG, LoadedSpec, load_typed, require_file
from policies.run import AuditOptions, AuditSources, audit
from rehearsal.client import Rehearsal
from trainstack.advice import Question, advise
from trainstack.cli.advise import count
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.operations.policy_files import PolicyFiles, of_stack
from trainstack.cli.operations.results import UnreadableError, read, uri_of
from trainstack.cli.operations.session import open_engine
from trainstack.dossier.facts import UNREAD, Missing, Source, StackFacts, ValidationResult, is_missing

if TYPE_CHECKING:
    from policies.audit import Audit
    from trainstack.versions.pins import Row as Pinned

Row = Mapping[str, Any]
_GONE = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")


@dataclass(frozen=True)
class RunAsked:
    """The run that GPUs are compared for, as options give it."""

    parameters: str = "7B"
    tokens: str = "500M"
    method: str = "lora"


@dataclass(frozen=True)
class Wanted:
    """Options of a report."""

    stack: str
    rehearse: bool
    at: datetime.datetime | None = None
    policies: PolicyFiles = field(default_factory=PolicyFiles)
    drift: bool = True
    versions: bool = True
    run: RunAsked = field(default_factory=RunAsked)
    folder: Path = CONFIG
    """Folder of the stack file."""
    with_evidence: bool = False
    """Whether the facts have an evidence bundle of the audit."""


@dataclass(frozen=True)
class _Deployed:
    """A stack as its engine has it."""

    source: Source
    rows: Sequence[Row]
    file: Mapping[str, Any]
    """The document that `audit` reads: a state, or a preview."""
    why: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)
    """Stack outputs."""
    engine: EngineStack | None = None
    rehearsal: Rehearsal | None = None
    unread: UserError | SetupError | None = None
    """Why the state was not read."""

    @property
    def gap(self) -> str:
        """The gap of the parts that are made from the resources."""
        return UNREAD if self.unread and not is_missing(self.unread) else self.why


def collect(wanted: Wanted) -> StackFacts:
    """The facts. Raises UserError for a stack without a file, and for options that are wrong."""
    asked = _question(wanted.run)
    loaded, problems = _spec(wanted.stack, wanted.folder)
    now = (wanted.at or datetime.datetime.now(datetime.UTC)).replace(tzinfo=datetime.UTC)
    deployed = _deployed(wanted, loaded)
    if loaded is None and not deployed.rows:
        raise UserError(problems)
    judged, evidence = _audit(wanted, deployed, now)
    exported = deployed.found
    record = exported.get(outputs.KEY)
    custom = [one for one in deployed.rows if one.get("custom")] if deployed.source == "state" else []
    found = gates(custom)
    return StackFacts(
        stack=wanted.stack,
        at=now,
        version=metadata.version("trainstack"),
        rehearsed=wanted.rehearse,
        loaded=loaded,
        problems=problems,
        source=deployed.source,
        resources=deployed.rows,
        why=deployed.why,
        unread=deployed.unread,
        outputs=dict(record) if isinstance(record, Mapping) else None,
        gates=found,
        results=[*_results(found, exported, deployed.rehearsal, loaded)],
        audit=judged,
        evidence=evidence,
        versions=_versions(wanted, loaded),
        drift=_drift(wanted, deployed),
        advice=_advice(asked, loaded),
        is_example=wanted.run == RunAsked(),
    )


def _question(run: RunAsked) -> Question:
    return Question(
        parameters=count("--parameters", run.parameters, "7B"),
        tokens=count("--tokens", run.tokens, "500M"),
        method=run.method,  # type: ignore[arg-type]  # validated by Question
    )


def _spec(stack: str, folder: Path) -> tuple[LoadedSpec | None, Sequence[Problem]]:
    require_file(stack, folder)
    try:
        loaded = load_typed(stack, folder)
    except UserError as error:
        return None, error.problems
    return loaded, loaded.broken


def _deployed(wanted: Wanted, loaded: LoadedSpec | None) -> _Deployed:
    """The state of a stack; without one the preview of its first `up`; nothing where one cannot be read."""
    try:
        engine, rehearsal = open_engine(wanted.stack, rehearse=wanted.rehearse)
        rows = engine.resources()
        if any(one.get("custom") and not one["type"].startswith("pulumi:") for one in rows):
            found = {key: output.value for key, output in engine.outputs().items() if not output.secret}
            state = {"version": 3, "deployment": {"resources": rows}}
            return _Deployed("state", rows, state, "", found, engine, rehearsal)
    except (UserError, SetupError) as error:
        return _Deployed("none", (), {}, _rule(error), unread=error)
    if loaded is None or loaded.broken:
        return _Deployed("none", (), {}, "nothing is deployed, and the stack file breaks rules")
    try:
        plan = engine.planned()
    except (UserError, SetupError) as error:
        return _Deployed("none", (), {}, _first_line(error))
    steps = [one for one in plan.get("steps", ()) if one.get("op") not in _GONE and one.get("newState")]
    return _Deployed("preview", [one["newState"] for one in steps], plan, "", {}, engine, rehearsal)


def _rule(error: UserError | SetupError) -> str:
    """The reason on one line, without the fix: readers of a report cannot follow it."""
    rules = "; ".join(one.rule for one in error.problems) if isinstance(error, UserError) else str(error)
    return " ".join(rules.split())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _results(
    found: Sequence[Gate],
    exported: Mapping[str, Any],
    rehearsal: Rehearsal | None,
    loaded: LoadedSpec | None,
) -> Iterator[ValidationResult]:
    if job_outputs.is_of_jobs(exported):
        record = job_outputs.parse(exported)
        if record.smoke is not None:
            pool = next(iter(loaded.spec.validated), "") if loaded else ""
            yield _result(pool or "jobs", record.smoke.result_uri, record.region, rehearsal)
    elif slurm_outputs.is_of_slurm(exported):
        system = slurm_outputs.parse(exported)
        for job in system.smoke:
            yield _result(job.job, job.result_uri, system.region, rehearsal)
    elif outputs.KEY in exported and not manager_outputs.is_of_manager(exported):
        cluster = outputs.parse(exported)
        runs = {run.pool: run for run in cluster.smoke}
        for gate in found:
            if run := runs.get(gate.pool):
                yield _result(gate.pool, uri_of(run, gate), cluster.region, rehearsal)


def _result(pool: str, uri: str, region: str, rehearsal: Rehearsal | None) -> ValidationResult:
    try:
        return ValidationResult(pool, uri, read(uri, region, rehearsal))
    except UnreadableError as error:
        return ValidationResult(pool, uri, error=str(error))


def _audit(
    wanted: Wanted, deployed: _Deployed, now: datetime.datetime
) -> "tuple[Audit | Missing, Mapping[str, bytes]]":
    """The verdict on the state or the preview, with evidence where it is wanted.

    Raises UserError for files of the policies that are wrong.
    """
    if not deployed.rows:
        return Missing(deployed.gap or "the stack has no resources"), {}
    with tempfile.TemporaryDirectory() as folder:
        path, bundle = Path(folder, f"{wanted.stack}.json"), Path(folder, "evidence")
        path.write_text(json.dumps(deployed.file), encoding="utf-8")
        preview = deployed.source == "preview"
        sources = AuditSources(preview=path) if preview else AuditSources(state=path)
        evidence = bundle if wanted.with_evidence else None
        chosen = of_stack(wanted.policies, wanted.stack)
        options = AuditOptions(chosen.config, chosen.environment, chosen.waivers, at=now, evidence=evidence)
        found = audit(sources, options)
        files = {one.name: one.read_bytes() for one in sorted(bundle.iterdir())} if evidence else {}
        return found, files


def _versions(wanted: Wanted, loaded: LoadedSpec | None) -> "Sequence[Pinned] | Missing":
    if loaded is None:
        return Missing("the stack file cannot be read")
    if not loaded.spec.layout.has_cluster:
        return Missing("a stack without a cluster pins no versions of a cloud")
    if wanted.rehearse or not wanted.versions:
        why = "a rehearsal asks no cloud" if wanted.rehearse else "not asked for (--no-versions)"
        return Missing(f"{why}; `trainstack versions -s {wanted.stack}` shows them")
    try:
        return services_of(loaded.spec.cloud).versions().rows(loaded.spec)
    except UserError as error:
        return Missing(_first_line(error))


def _drift(wanted: Wanted, deployed: _Deployed) -> Sequence[DriftStep] | Missing:
    if deployed.source != "state" or deployed.engine is None:
        return Missing(deployed.gap if deployed.unread else "nothing is deployed")
    if not wanted.drift:
        return Missing("not compared (--no-drift)")
    plan = RefreshPlan()
    outcome = watched(deployed.engine, "drift", plan.listening(deployed.engine.drift), to_stderr=True)
    if not outcome.succeeded:
        errors = [one.partition("\n")[0] for one in outcome.errors if one]
        return Missing(next(iter(errors), "the comparison failed"))
    return sorted(plan.steps, key=lambda one: (one.type, one.name))


def _advice(asked: Question, loaded: LoadedSpec | None) -> Any:
    if loaded is None:
        return Missing("the stack file cannot be read")
    return advise(asked, (loaded.spec.cloud,), loaded.spec.region)  # type: ignore[arg-type]  # aws or gcp
