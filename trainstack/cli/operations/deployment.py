"""Operations that give a stack what its spec says: preview and deployment."""

import datetime
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

from infra import stackspec
from infra.engine import recovery
from infra.engine.packs import NO_PACKS, Packs
from infra.engine.plan import PreviewPlan
from infra.engine.progress import watched
from infra.engine.stack import OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from infra.gate import undecided, validation_jobs
from rehearsal.core import faults as rehearsal_faults
from rehearsal.projects import homes
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.clouds.services import CloudServices
from trainstack.cli.operations import comment, summary
from trainstack.cli.operations.jobs_in_use import jobs_in_use, resume_queues
from trainstack.cli.operations.preview import Preview, print_preview, print_preview_json, print_up_json
from trainstack.cli.operations.session import UNCHANGED, Kinds, Session, finish, open_engine, refuse_rehearsed
from trainstack.preflight.deployment import require_ready

PreviewFormat = Literal["text", "json", "markdown"]


@dataclass(kw_only=True)
class DeploySession(Session):
    """A stack with the checked spec that it is to have."""

    loaded: stackspec.LoadedSpec

    @property
    def _cloud(self) -> CloudServices:
        return services_of(self.loaded.spec.cloud)

    def up(
        self,
        *,
        confirmed: bool,
        verbose: bool = False,
        now: bool = False,
        plan: str = "",
        as_json: bool = False,
    ) -> None:
        """Deploy. Raises typer.Exit when the deployment or its validation fails, or a policy is violated.

        Jobs of removed teams and pools are stopped before; `now`: without their grace period. `plan`: digest
        of the preview that was confirmed; another plan is refused. `as_json`: only a JSON document goes to
        standard output.

        With policy packs the stack is previewed first: packs judge the whole stack after the last step, when
        a deployment has already created what they forbid.
        Raises UserError for a deployment that this account cannot finish.
        """
        if not as_json:
            finish(self._up(confirmed, verbose, now, plan))
            return
        with redirect_stdout(sys.stderr):
            outcome = self._up(confirmed, verbose, now, plan)
        print_up_json(self.name, outcome)
        finish(outcome)

    def _up(self, confirmed: bool, verbose: bool, now: bool, plan: str) -> OperationOutcome:
        if self.rehearsal:
            self._refuse_beyond_quotas()
        else:
            member = self.loaded.member
            elsewhere = member is not None and member.is_elsewhere(self.loaded.spec)
            together = (member.of,) if member and elsewhere else ()
            require_ready(self._cloud.preflight(self.loaded.spec, together))
        if plan or (confirmed and self.engine.packs):
            judged = self._judge(plan)
            if not judged.succeeded or judged.interrupted:
                return judged
        self._confirm(confirmed, "Deploy")
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
        return outcome

    def _judge(self, confirmed: str) -> OperationOutcome:
        """Preview for policies. Raises UserError where the plan is not the confirmed one, if any."""
        plan = PreviewPlan()
        outcome = self._watched("preview before the deployment", plan.listening(self.engine.preview))
        if not outcome.succeeded or outcome.interrupted:
            summary.of_changes("preview", outcome)
        elif confirmed and plan.digest != confirmed:
            rule, fix = "is not the plan of this stack any more", "Preview again, and confirm the new plan."
            raise UserError([Problem("--plan", confirmed, rule, fix, code="plan-changed")])
        return outcome

    def _refuse_beyond_quotas(self) -> None:
        """Raise UserError where the stack exceeds a quota of the scenario, with the message of the cloud."""
        problems = [
            Problem(f"quota {short.key}", None, f"{short.message} {short}", short.fix, code="over-quota")
            for short in self._cloud.beyond(self.loaded.spec, self.faults.quotas, largest=False)
        ]
        if problems:
            raise UserError(problems)

    def _deployed(self, on_event: OnEvent) -> OperationOutcome:
        presumed = self._presumed if self.rehearsal else []
        if self.rehearsal and presumed and (new := self.rehearsal.seed(presumed)):
            typer.echo(f"  presumed to be bought: {', '.join(new)}")
        return self.engine.up(on_event, replace=self._to_validate_again())

    def _to_validate_again(self) -> list[str]:
        """The URN of the validation, if a fault affects it: the engine would keep one that passed."""
        if self.rehearsal is None or self.faults.smoke is None:
            return []
        backend = self.rehearsal.home / "state"
        known = recovery.resources(backend, self.engine.project, self.name)
        return [one["urn"] for one in validation_jobs(known)]

    def preview(self, form: PreviewFormat = "text") -> None:
        """Print what would change and what the stack costs."""
        finish(self._previewed(form))

    def _show(self) -> None:
        outcome = self._previewed()
        if not outcome.succeeded:
            finish(outcome)

    def _previewed(self, form: PreviewFormat = "text") -> OperationOutcome:
        plan = PreviewPlan()
        show = plan.listening(self.engine.preview)
        outcome = watched(self.engine, "preview", show, to_stderr=form != "text")
        shortfalls = self._cloud.beyond(self.loaded.spec, self.faults.quotas, largest=True)
        with jobs_in_use(self.engine, self.rehearsal, self.loaded.spec) as jobs:
            lines = jobs.lines(plan.steps)
        ended = Preview(self.loaded, outcome, plan, shortfalls, datetime.date.today(), lines)
        if form == "markdown":
            typer.echo(comment.document(ended, judged=bool(self.engine.packs)))
        else:
            (print_preview_json if form == "json" else print_preview)(ended)
        return outcome


def open_deployment(
    stack: str,
    *,
    rehearse: bool,
    faults: Sequence[str] = (),
    scenario: Path | None = None,
    kinds: Kinds = UNCHANGED,
    packs: Packs = NO_PACKS,
) -> DeploySession:
    """Check the spec, then open the stack. Raises UserError and SetupError before anything is started."""
    loaded = stackspec.load_file(stack)
    if not rehearse:
        refuse_rehearsed({**kinds.options, "--fault": ", ".join(faults), "--faults": scenario})
        parsed = rehearsal_faults.Faults()
    else:
        parsed = rehearsal_faults.parse(faults, scenario)
        _refuse_without_pods(parsed, loaded.spec)
        homes.of_checkout().choose(kinds.cluster, kinds.provider)
    engine, rehearsal = open_engine(stack, rehearse=rehearse, packs=packs)
    return DeploySession(
        name=stack, engine=engine, spec=loaded.spec, rehearsal=rehearsal, faults=parsed, loaded=loaded
    )


def _refuse_without_pods(faults: rehearsal_faults.Faults, spec: stackspec.StackSpec) -> None:
    """Raise UserError for a slow rank where no pod validates: it would have no effect."""
    if faults.smoke is not None and not spec.layout.has_cluster:
        rule = f"slows a rank in a pod, and the profile {spec.layout.profile} validates by other jobs"
        fix = "Leave it out, or rehearse a stack with a cluster."
        given = f"smoke:slow-rank={faults.smoke.slow_rank}"
        raise UserError([Problem("--fault", given, rule, fix, code="fault-needs-cluster")])
