"""Operations on one stack, in real or rehearsed clouds, with progress, interruption and a summary."""

import contextlib
import datetime
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from infra.engine.install import require
from infra.engine.packs import NO_PACKS, Packs
from infra.engine.plan import RefreshPlan
from infra.engine.progress import watched
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.places import PACKAGES, STACKS
from infra.stackspec import StackSpec
from infra.stackspec.load import load_deployed, require_file
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, ProviderKind
from rehearsal.control import ControlError
from rehearsal.core import faults as rehearsal_faults
from rehearsal.projects import homes
from rehearsal.projects.project import read
from rehearsal.projects.workspace import Workspace, of_checkout
from rehearsal.recovery import alone
from trainstack import held_addresses
from trainstack.cli.clouds.choice import services_of, services_of_state
from trainstack.cli.operations import summary, unreachable
from trainstack.cli.operations.drift import print_drift
from trainstack.cli.operations.jobs_in_use import JobsInUse, jobs_in_use
from trainstack.cli.output import print_warnings, require_terminal
from trainstack.protection import protected


def checkout_workspace(stack: str) -> Workspace:
    """The workspace of a rehearsed stack of this folder, created if absent. Raises UserError."""
    require_file(stack)
    return of_checkout(read(STACKS or PACKAGES), stack, homes.of_checkout(), require().path)


@dataclass(frozen=True)
class Kinds:
    """Kubernetes of the rehearsal, from the options of a command; None: unchanged."""

    cluster: ClusterKind | None = None
    provider: ProviderKind | None = None

    @property
    def options(self) -> Mapping[str, object]:
        """The values by option."""
        return {"--cluster": self.cluster, "--provider": self.provider}


UNCHANGED = Kinds()


@dataclass(kw_only=True)
class Session:
    """A deployed stack, which can be ended whatever its spec says today."""

    name: str
    engine: EngineStack
    spec: StackSpec | None = None
    """The spec, which may break rules; None where its values are not of their types."""
    rehearsal: Rehearsal | None = None
    faults: rehearsal_faults.Faults = field(default_factory=rehearsal_faults.Faults)

    @property
    def _presumed(self) -> list[dict[str, Any]]:
        """Capacity that a rehearsal takes as bought, as the spec names it."""
        return services_of(self.spec.cloud).presumed(self.spec) if self.spec else []

    def refresh(self, *, confirmed: bool) -> None:
        """Adopt into the state what changed outside of it."""
        self._confirm(confirmed, "Refresh the state of")
        outcome = self._changing("refresh", self.engine.refresh)
        summary.of_changes("refresh", outcome)
        finish(outcome)

    def drift(self, *, as_json: bool = False) -> None:
        """Print what differs between state and cloud. Raises typer.Exit with 3 where something does."""
        plan = RefreshPlan()
        outcome = watched(self.engine, "drift", plan.listening(self.engine.drift), to_stderr=as_json)
        print_drift(self.name, outcome, plan, as_json=as_json)
        finish(outcome)
        if plan.steps:
            raise typer.Exit(ExitCode.VIOLATIONS)

    def destroy(self, *, confirmed: bool, now: bool = False) -> None:
        """Delete everything; in a rehearsal also all processes of the stack.

        Jobs are stopped before; `now`: without their grace period. Raises UserError, before anything is
        deleted, when a resource is protected.
        """
        resources = self.engine.resources()
        if problems := list(protected(resources)):
            raise UserError(problems)
        with jobs_in_use(self.engine, self.rehearsal, None) as jobs:
            jobs.announce()
            today = datetime.datetime.now(datetime.UTC)
            for line in held_addresses.announced(resources, today):
                typer.echo(f"  {line}")
            self._confirm(confirmed, "Destroy everything in")
            operation = functools.partial(self._destroyed, services_of_state(resources).to_keep(resources))
            outcome = self._changing("destroy", operation, jobs, now=now)
        if self.rehearsal and outcome.succeeded:
            for one in self._presumed:
                with contextlib.suppress(ControlError):  # it was never deployed, or another stack uses it
                    self.rehearsal.drift(one["urn"], None)
        # Resources of other stacks in the same home keep its daemon.
        if self.rehearsal and outcome.succeeded and not any(self.rehearsal.status()["resources"].values()):
            self.rehearsal.wait_until_idle()
        summary.of_changes("destroy", outcome)
        for line in unreachable.explained(self.name, outcome.errors):
            typer.echo(f"  {line}")
        finish(outcome)

    def _destroyed(self, kept: Sequence[str], on_event: OnEvent) -> OperationOutcome:
        if kept:
            outcome = self.engine.retain(kept, on_event)
            if not outcome.succeeded:
                return outcome
            typer.echo(f"  kept in the account: {', '.join(urn.rpartition('::')[2] for urn in kept)}")
        return self.engine.destroy(on_event)

    def _confirm(self, confirmed: bool, what: str) -> None:
        if confirmed:
            return
        require_terminal()
        self._show()
        where = "the emulated clouds" if self.rehearsal else "the real cloud"
        typer.confirm(f"{what} stack {self.name} in {where}?", abort=True)

    def _show(self) -> None:
        """Show what is to be confirmed, where the operation does not say it."""

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
        with alone(self.rehearsal, self.engine.project, self.name):
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


def finish(outcome: OperationOutcome) -> None:
    """Raise typer.Exit for an operation that has not succeeded."""
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


def only_slurm(stack: str, *, rehearse: bool) -> Problem:
    """The problem of a command for clusters or managed jobs with a Slurm system."""
    flag = " --rehearse" if rehearse else ""
    rule = "is a Slurm system: it has no Kubernetes, MLflow, Grafana or managed jobs"
    fix = (
        f"`trainstack status -s {stack}{flag}` shows how to reach its login node, `trainstack slurm queue` "
        "and `ledger` its jobs; use sbatch, squeue, sacct and scontrol there."
    )
    return Problem("stack", stack, rule, fix, code="stack-is-slurm")


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


def open_session(stack: str, *, rehearse: bool, kinds: Kinds = UNCHANGED) -> Session:
    """Open a deployed stack; print what is wrong with its spec today. Raises UserError and SetupError."""
    spec, problems = load_deployed(stack)
    print_warnings(problems)
    if rehearse:
        homes.of_checkout().choose(kinds.cluster, kinds.provider)
    else:
        refuse_rehearsed(kinds.options)
    engine, rehearsal = open_engine(stack, rehearse=rehearse)
    return Session(name=stack, engine=engine, spec=spec, rehearsal=rehearsal)
