"""One operation on one stack, in real or rehearsed clouds, with progress, interruption and a summary."""

import datetime
import os
import sys
from collections.abc import Callable, Sequence
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
from infra.errors import USAGE_EXIT_CODE, Problem, UserError
from infra.gate import undecided, validation_jobs
from rehearsal import homes
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, ProviderKind
from rehearsal.core import faults as rehearsal_faults
from rehearsal.projects.project import read
from rehearsal.projects.workspace import Workspace, of_checkout
from rehearsal.recovery import alone
from trainstack.cli import summary
from trainstack.plans.drains import drains
from trainstack.plans.losses import keeps, losses
from trainstack.preflight.shortfalls import beyond
from trainstack.protection import protected

FAILED_EXIT_CODE = 1
VIOLATIONS_EXIT_CODE = 3  # as in an audit
INTERRUPTED_EXIT_CODE = 130


def checkout_workspace(stack: str) -> Workspace:
    """The workspace of a rehearsed stack of this checkout; made when it is new. Raises UserError."""
    return of_checkout(read(ROOT), stack, homes.of_checkout(), require().path)


@dataclass(frozen=True)
class Kinds:
    """What a command says of its rehearsal's Kubernetes; None: as it was."""

    cluster: ClusterKind | None = None
    provider: ProviderKind | None = None


@dataclass
class Session:
    """A stack that is ready to be operated on."""

    loaded: stackspec.LoadedSpec
    engine: EngineStack
    rehearsal: Rehearsal | None = None
    faults: rehearsal_faults.Faults = field(default_factory=rehearsal_faults.Faults)

    def up(self, *, confirmed: bool, verbose: bool = False) -> None:
        """Deploy; ends the process with 1 when the deployment or its validation fails, 3 for policies.

        With policy packs it is previewed first: they judge the stack as a whole after the last step, and in a
        deployment what they forbid exists by then.
        Raises UserError for what could not succeed in this account.
        """
        if self.rehearsal:
            self._refuse_beyond_quotas()
        else:
            from trainstack.preflight.deployment import refuse_what_cannot_finish  # noqa: PLC0415 - imports an SDK

            refuse_what_cannot_finish(self.loaded.spec)
        if confirmed and self.engine.packs:
            self._judge()
        self._confirm(confirmed, "Deploy", show=self.engine.preview)
        outcome = self._changing("up", self._deployed)
        if self.rehearsal and self.faults.smoke is None and undecided(outcome.errors):
            # Here its ranks share this machine with the clouds, the engine and whoever else uses it.
            typer.echo("The validation is undecided, for this machine did other work. It runs once more.")
            outcome = self._changing("up", self._deployed)
        summary.of_deployment(self.loaded, self.engine, outcome, self.rehearsal, verbose=verbose)
        _finish(outcome)

    def _judge(self) -> None:
        """End the process where a policy forbids what would be deployed, or the packs cannot be asked."""
        outcome = self._watched("preview for policies", self.engine.preview)
        if not outcome.succeeded:
            summary.of_changes("preview", outcome)
            _finish(outcome)

    def _refuse_beyond_quotas(self) -> None:
        """A scenario's quotas end a rehearsed deployment before it begins, in the words of the cloud."""
        problems = [
            Problem(f"quota {short.key}", None, f"{short.words} {short}", short.fix)
            for short in beyond(self.loaded.spec, self.faults.quotas, largest=False)
        ]
        if problems:
            raise UserError(problems)

    def _deployed(self, on_event: OnEvent) -> OperationOutcome:
        return self.engine.up(on_event, replace=self._to_validate_again())

    def _to_validate_again(self) -> list[str]:
        """The URN of the validation, if the faults are about it: one that passed would be left alone."""
        if self.rehearsal is None or self.faults.smoke is None:
            return []
        backend = self.rehearsal.home / "state"
        known = recovery.resources(backend, self.engine.project, self.loaded.spec.name)
        return [one["urn"] for one in validation_jobs(known)]

    def preview(self) -> None:
        """Say what would change and what the stack costs."""
        outcome = self._previewed(self.engine.preview)
        _finish(outcome)

    def refresh(self, *, confirmed: bool) -> None:
        """Take over what changed outside."""
        self._confirm(confirmed, "Refresh the state of")
        outcome = self._changing("refresh", self.engine.refresh)
        summary.of_changes("refresh", outcome)
        _finish(outcome)

    def destroy(self, *, confirmed: bool) -> None:
        """Delete everything; in a rehearsal, no resource and no process of the stack is left afterwards.

        Raises UserError, before anything is deleted, when a resource is protected.
        """
        if problems := list(protected(self.engine.resources())):
            raise UserError(problems)
        self._confirm(confirmed, "Destroy everything in")
        outcome = self._changing("destroy", self.engine.destroy)
        # What other stacks have in the same home keeps its daemon.
        if self.rehearsal and outcome.succeeded and not any(self.rehearsal.status()["resources"].values()):
            self.rehearsal.wait_until_idle()
        summary.of_changes("destroy", outcome)
        _finish(outcome)

    def _confirm(
        self, confirmed: bool, what: str, show: Callable[[OnEvent], OperationOutcome] | None = None
    ) -> None:
        if confirmed:
            return
        if not sys.stdin.isatty():
            rule = "confirmation needs a terminal"
            raise UserError([Problem("--yes", None, rule, "Add --yes, or run it in a terminal.")])
        if show:
            outcome = self._previewed(show)
            if not outcome.succeeded:
                _finish(outcome)
        where = "the emulated clouds" if self.rehearsal else "the real cloud"
        typer.confirm(f"{what} stack {self.loaded.spec.name} in {where}?", abort=True)

    def _previewed(self, show: Callable[[OnEvent], OperationOutcome]) -> OperationOutcome:
        plan = PreviewPlan()
        outcome = self._watched("preview", plan.listening(show))
        shortfalls = beyond(self.loaded.spec, self.faults.quotas, largest=True)
        ended = [f"nodes end: {line}" for line in drains(plan.steps)]
        if lost := [f"data goes: {line}" for line in losses(plan.steps)]:
            ended += lost + [f"data stays: {line}" for line in keeps(plan.kept)]
        summary.of_preview(self.loaded, outcome, shortfalls, ended, on=datetime.date.today())
        return outcome

    def _changing(self, title: str, operation: Callable[[OnEvent], OperationOutcome]) -> OperationOutcome:
        """An operation that changes the stack: alone, and after what a killed one left is put right."""
        if not self.rehearsal:
            return self._watched(title, operation)
        with alone(self.rehearsal, self.engine.project, self.loaded.spec.name):
            self.rehearsal.set_faults(self.faults.model_dump(mode="json", exclude_none=True))
            return self._watched(title, operation)

    def _watched(self, title: str, operation: Callable[[OnEvent], OperationOutcome]) -> OperationOutcome:
        return watched(self.engine, title, operation)


def _finish(outcome: OperationOutcome) -> None:
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED_EXIT_CODE)
    if not outcome.succeeded:
        violated = VIOLATIONS_EXIT_CODE if outcome.violated else FAILED_EXIT_CODE
        raise typer.Exit(USAGE_EXIT_CODE if outcome.refused else violated)


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
        if kinds != Kinds():
            said = f"{kinds.cluster or kinds.provider}"
            rule = "only a rehearsal can choose its cluster"
            raise UserError([Problem("--cluster", said, rule, "Add --rehearse, or leave it out.")])
        if faults or scenario:
            fix = "Add --rehearse, or leave the fault out."
            raise UserError([Problem("--fault", [*faults], "faults exist only in a rehearsal", fix)])
        return Session(loaded, EngineStack(stack, dict(os.environ), packs=packs))
    parsed = rehearsal_faults.parse(faults, scenario)
    homes.of_checkout().choose(kinds.cluster, kinds.provider)
    workspace = checkout_workspace(stack)
    for line in workspace.notes:
        typer.echo(f"  {line}")
    engine = EngineStack(stack, workspace.variables, packs=packs)
    return Session(loaded, engine, homes.of_checkout(), parsed)
