"""Operations on one stack, in real or rehearsed clouds, with progress, interruption and a summary."""

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from infra import stackspec
from infra.engine import recovery
from infra.engine.golang import ROOT
from infra.engine.install import require
from infra.engine.packs import NO_PACKS, Packs
from infra.engine.plan import PreviewPlan
from infra.engine.progress import watched
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.gate import undecided, validation_jobs
from infra.jobs.aws.account_logs import to_retain
from infra.stackspec.load import require_file
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, ProviderKind
from rehearsal.core import faults as rehearsal_faults
from rehearsal.projects import homes
from rehearsal.projects.project import read
from rehearsal.projects.workspace import Workspace, of_checkout
from rehearsal.recovery import alone
from trainstack import held_addresses
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.clouds.services import CloudServices
from trainstack.cli.operations import summary
from trainstack.cli.operations.jobs_in_use import JobsInUse, jobs_in_use, resume_queues
from trainstack.cli.operations.preview import Preview, print_preview, print_preview_json
from trainstack.cli.output import require_terminal
from trainstack.preflight.deployment import require_ready
from trainstack.protection import protected


def checkout_workspace(stack: str) -> Workspace:
    """The workspace of a rehearsed stack of this checkout, created if absent. Raises UserError."""
    require_file(stack)
    return of_checkout(read(ROOT), stack, homes.of_checkout(), require().path)


@dataclass(frozen=True)
class Kinds:
    """Kubernetes of the rehearsal, from the options of a command; None: unchanged."""

    cluster: ClusterKind | None = None
    provider: ProviderKind | None = None


@dataclass
class Session:
    """A stack that is ready to be operated on."""

    loaded: stackspec.LoadedSpec
    engine: EngineStack
    rehearsal: Rehearsal | None = None
    faults: rehearsal_faults.Faults = field(default_factory=rehearsal_faults.Faults)

    @property
    def _cloud(self) -> CloudServices:
        return services_of(self.loaded.spec.cloud)

    def up(self, *, confirmed: bool, verbose: bool = False, now: bool = False) -> None:
        """Deploy. Raises typer.Exit when the deployment or its validation fails, or a policy is violated.

        Jobs of removed teams and pools are stopped before; `now`: without their grace period.

        With policy packs the stack is previewed first: packs judge the whole stack after the last step, when
        a deployment has already created what they forbid.
        Raises UserError for a deployment that this account cannot finish.
        """
        if self.rehearsal:
            self._refuse_beyond_quotas()
        else:
            require_ready(self._cloud.preflight(self.loaded.spec))
        if confirmed and self.engine.packs:
            self._judge()
        self._confirm(confirmed, "Deploy", show=self.engine.preview)
        with jobs_in_use(self.engine, self.rehearsal, self.loaded.spec) as jobs:
            if confirmed:
                jobs.announce()
            outcome = self._changing("up", self._deployed, jobs, now=now)
        if not outcome.locked:  # else others are stopped for the other operation
            resume_queues(self.engine, self.rehearsal)
        if self.rehearsal and self.faults.smoke is None and undecided(outcome.errors):
            # The ranks share this machine with the emulated clouds, the engine and other users.
            typer.echo("Validation inconclusive (busy machine); retrying once.")
            outcome = self._changing("up", self._deployed)
        summary.of_deployment(self.loaded, self.engine, outcome, self.rehearsal, verbose=verbose)
        _finish(outcome)

    def _judge(self) -> None:
        """Raise typer.Exit where a policy is violated, or a pack cannot be loaded."""
        outcome = self._watched("preview for policies", self.engine.preview)
        if not outcome.succeeded:
            summary.of_changes("preview", outcome)
            _finish(outcome)

    def _refuse_beyond_quotas(self) -> None:
        """Raise UserError where the stack exceeds a quota of the scenario, with the message of the cloud."""
        problems = [
            Problem(f"quota {short.key}", None, f"{short.message} {short}", short.fix, code="over-quota")
            for short in self._cloud.beyond(self.loaded.spec, self.faults.quotas, largest=False)
        ]
        if problems:
            raise UserError(problems)

    def _keep_logs(self) -> None:
        """Keep logs of others: earlier versions own the log groups of the account, with their key."""
        if urns := to_retain(self.engine.resources()):
            self.engine.retain(urns)
            typer.echo(f"  kept: {', '.join(urn.rpartition('::')[2] for urn in urns)} (logs of the account)")

    def _destroyed(self, on_event: OnEvent) -> OperationOutcome:
        self._keep_logs()
        return self.engine.destroy(on_event)

    def _deployed(self, on_event: OnEvent) -> OperationOutcome:
        self._keep_logs()
        return self.engine.up(on_event, replace=self._to_validate_again())

    def _to_validate_again(self) -> list[str]:
        """The URN of the validation, if a fault affects it: the engine would keep one that passed."""
        if self.rehearsal is None or self.faults.smoke is None:
            return []
        backend = self.rehearsal.home / "state"
        known = recovery.resources(backend, self.engine.project, self.loaded.spec.name)
        return [one["urn"] for one in validation_jobs(known)]

    def preview(self, *, as_json: bool = False) -> None:
        """Print what would change and what the stack costs."""
        _finish(self._previewed(self.engine.preview, as_json=as_json))

    def refresh(self, *, confirmed: bool) -> None:
        """Adopt into the state what changed outside of it."""
        self._confirm(confirmed, "Refresh the state of")
        outcome = self._changing("refresh", self.engine.refresh)
        summary.of_changes("refresh", outcome)
        _finish(outcome)

    def destroy(self, *, confirmed: bool, now: bool = False) -> None:
        """Delete everything; in a rehearsal also all processes of the stack.

        Jobs are stopped before; `now`: without their grace period. Raises UserError, before anything is
        deleted, when a resource is protected.
        """
        if problems := list(protected(self.engine.resources())):
            raise UserError(problems)
        with jobs_in_use(self.engine, self.rehearsal, None) as jobs:
            jobs.announce()
            for line in held_addresses.announced(self.engine.resources()):
                typer.echo(f"  {line}")
            self._confirm(confirmed, "Destroy everything in")
            outcome = self._changing("destroy", self._destroyed, jobs, now=now)
        # Resources of other stacks in the same home keep its daemon.
        if self.rehearsal and outcome.succeeded and not any(self.rehearsal.status()["resources"].values()):
            self.rehearsal.wait_until_idle()
        summary.of_changes("destroy", outcome)
        _finish(outcome)

    def _confirm(
        self, confirmed: bool, what: str, show: Callable[[OnEvent], OperationOutcome] | None = None
    ) -> None:
        if confirmed:
            return
        require_terminal()
        if show:
            outcome = self._previewed(show)
            if not outcome.succeeded:
                _finish(outcome)
        where = "the emulated clouds" if self.rehearsal else "the real cloud"
        typer.confirm(f"{what} stack {self.loaded.spec.name} in {where}?", abort=True)

    def _previewed(
        self, show: Callable[[OnEvent], OperationOutcome], *, as_json: bool = False
    ) -> OperationOutcome:
        plan = PreviewPlan()
        outcome = watched(self.engine, "preview", plan.listening(show), to_stderr=as_json)
        shortfalls = self._cloud.beyond(self.loaded.spec, self.faults.quotas, largest=True)
        with jobs_in_use(self.engine, self.rehearsal, self.loaded.spec) as jobs:
            lines = jobs.lines(plan.steps)
        ended = Preview(self.loaded, outcome, plan, shortfalls, datetime.date.today(), lines)
        (print_preview_json if as_json else print_preview)(ended)
        return outcome

    def _changing(
        self,
        title: str,
        operation: Callable[[OnEvent], OperationOutcome],
        jobs: JobsInUse | None = None,
        *,
        now: bool = False,
    ) -> OperationOutcome:
        """Run an operation that changes the stack: exclusively, after recovery from one that was killed.

        `jobs` are drained before, once no other operation runs; `now`: without their grace period.
        """
        if not self.rehearsal:
            return self._drained(title, operation, jobs, now=now)
        with alone(self.rehearsal, self.engine.project, self.loaded.spec.name):
            self.rehearsal.set_faults(self.faults.model_dump(mode="json", exclude_none=True))
            return self._drained(title, operation, jobs, now=now)

    def _drained(
        self,
        title: str,
        operation: Callable[[OnEvent], OperationOutcome],
        jobs: JobsInUse | None,
        *,
        now: bool,
    ) -> OperationOutcome:
        if jobs is None or not jobs.drains:
            return self._watched(title, operation)
        outcome = self._watched("lock of the stack", self.engine.ask_lock)
        if not outcome.succeeded or outcome.interrupted:
            return outcome
        jobs.drain(now=now)
        for repair, by in jobs.repairs(self.engine):
            outcome = self._watched(repair, by)
            if not outcome.succeeded or outcome.interrupted:
                jobs.release()
                return outcome
        outcome = self._watched(title, operation)
        if outcome.locked:  # another one has begun meanwhile
            jobs.release()
        return outcome

    def _watched(self, title: str, operation: Callable[[OnEvent], OperationOutcome]) -> OperationOutcome:
        return watched(self.engine, title, operation)


def _finish(outcome: OperationOutcome) -> None:
    if outcome.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if not outcome.succeeded:
        failed = ExitCode.VIOLATIONS if outcome.violated else ExitCode.FAILED
        raise typer.Exit(ExitCode.USAGE if outcome.refused else failed)


def open_engine(
    stack: str, *, rehearse: bool, packs: Packs = NO_PACKS
) -> tuple[EngineStack, Rehearsal | None]:
    """Open a stack in its backend without checking its spec. Raises UserError and SetupError."""
    if not rehearse:
        return EngineStack(stack, dict(os.environ), packs=packs), None
    workspace = checkout_workspace(stack)
    for line in workspace.notes:
        typer.echo(f"  {line}", err=True)
    return EngineStack(stack, workspace.variables, packs=packs), homes.of_checkout()


def not_deployed(stack: str, *, rehearse: bool) -> UserError:
    """The error for a stack without outputs."""
    flag, where = (" --rehearse", " in the rehearsal") if rehearse else ("", "")
    fix = f"Run `trainstack up -s {stack}{flag}` first."
    return UserError([Problem("stack", stack, f"nothing is deployed{where}", fix, code="not-deployed")])


def refuse_rehearsed(given: Mapping[str, object]) -> None:
    """Raise UserError for options of a rehearsal that are given outside of one."""
    fix = "Add --rehearse, or leave it out."
    problems = [
        Problem(option, f"{value}", "is an option of rehearsals", fix, code="option-needs-rehearse")
        for option, value in given.items()
        if value
    ]
    if problems:
        raise UserError(problems)


def open_session(
    stack: str,
    *,
    rehearse: bool,
    faults: Sequence[str] = (),
    scenario: Path | None = None,
    kinds: Kinds = Kinds(),
    packs: Packs = NO_PACKS,
) -> Session:
    """Check the spec, then open the stack. Raises UserError and SetupError before anything is started."""
    loaded = stackspec.load_file(stack)
    if not rehearse:
        given = {
            "--cluster": kinds.cluster,
            "--provider": kinds.provider,
            "--fault": ", ".join(faults),
            "--faults": scenario,
        }
        refuse_rehearsed(given)
        return Session(loaded, *open_engine(stack, rehearse=False, packs=packs))
    parsed = rehearsal_faults.parse(faults, scenario)
    homes.of_checkout().choose(kinds.cluster, kinds.provider)
    return Session(loaded, *open_engine(stack, rehearse=True, packs=packs), parsed)
