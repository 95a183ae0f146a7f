"""Jobs in the cluster of a deployed stack: what an operation does to them, and their end before it starts."""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import typer

from components.kubernetes.charts import INSTALL_TIMEOUT_S, charts
from infra.clouds.kubectl import ClusterApi, connected
from infra.engine.plan import PlannedStep
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from infra.jobs.submission import answered
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from infra.outputs import manager as manager_outputs
from infra.outputs import slurm as slurm_outputs
from infra.stackspec import StackSpec
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import real_cluster
from rehearsal.realcluster.real_provider import admin_kubeconfig
from trainstack.cli.operations.job_service import job_service
from trainstack.collect.object_lists import ListRefusedError, listed
from trainstack.plans.draining import Draining, resume
from trainstack.plans.drains import drains
from trainstack.plans.jobs import (
    BLOCKS,
    ENDS,
    RESUBMIT,
    STAYS,
    STOPS,
    JobEffect,
    Removal,
    RuntimeUse,
    effects,
    lost_networks,
    lost_runtimes,
    on_ending_nodes,
    removal,
    runtime_uses,
)  # fmt: skip
from trainstack.plans.managed_jobs import LOSES, IdentityLoss, identity_losses
from trainstack.plans.releases import HelmRecords, Identity, PendingRelease, installed, settle
from trainstack.queues.reading import read
from trainstack.queues.state import State

UNKNOWN = "jobs unknown"
_MISSING = 404
_SHOWN = 20
_LISTED_BY = {BLOCKS: "kubectl get trainjobs -A", LOSES: "trainstack runs"}
_HELM_S = 2 * INSTALL_TIMEOUT_S + 60
"""Longest operation of a release: Helm applies its timeout to each step, and these charts wait in one.

The rest is for requests, with their retries (helm v3.20.2 pkg/action/upgrade.go, releasingUpgrade).
"""
_NOTHING = Removal()
_Outputs = TypeVar("_Outputs")


@dataclass(frozen=True)
class JobsInUse:
    """The jobs of a deployed stack and the effect of an operation on them."""

    cluster: ClusterApi | None = None
    state: State | None = None
    removed: Removal = _NOTHING
    effects: Sequence[JobEffect] = ()
    unknown: str = ""
    """Why the jobs are not known; empty: they are."""
    held: set[str] = field(default_factory=set)
    """What `drain` has stopped, as paths of the API server."""
    runtimes: Sequence[RuntimeUse] = ()
    """TrainJobs that keep runtimes of removed pools."""
    losses: Sequence[IdentityLoss] = ()
    """Runs of a managed service that lose their identity."""
    partly_unknown: str = ""
    """Why further jobs are not known, such as TrainJobs that keep runtimes; empty: they are."""
    pending: Sequence[PendingRelease] = ()
    """Releases that an interrupted operation has left."""
    installed: Mapping[Identity, str] = field(default_factory=dict)
    """URNs of the releases in the state."""
    gone: Sequence[Identity] = ()
    """Those of them that Helm has not: an interrupted operation has uninstalled them."""
    halfway: list[Identity] = field(default_factory=list)
    """Those of them whose uninstall was interrupted, once `drain` has found them."""

    @property
    def drains(self) -> bool:
        """Return whether `drain` or `repairs` does anything."""
        return self.cluster is not None and bool(self.removed or self.pending or self.gone)

    def lines(self, steps: Iterable[PlannedStep] = ()) -> list[tuple[str, str]]:
        """Effects on jobs, with those on nodes that a plan ends: pairs of effect and job, the worst first."""
        if self.unknown:
            return [(UNKNOWN, self.unknown)]
        rows: list[tuple[str, str]] = [(LOSES, str(one)) for one in self.losses]
        rows += self._in_cluster([*steps]) if self.state else []
        return [*rows, *([(UNKNOWN, self.partly_unknown)] if self.partly_unknown else ())]

    def _in_cluster(self, planned: Sequence[PlannedStep]) -> Iterator[tuple[str, str]]:
        assert self.state
        found = {one.job.key: one for one in self.effects}
        for one in on_ending_nodes(self.state, planned, [*drains(planned)]):
            before = found.get(one.job.key)
            if before is None:
                found[one.job.key] = one
            elif before.effect == STAYS:
                found[one.job.key] = replace(one, why=f"{one.why}; {before.why}")
        rows = sorted(found.values(), key=lambda one: (ENDS, STOPS, RESUBMIT, STAYS).index(one.effect))
        yield from ((one.effect, str(one)) for one in rows)
        yield from ((BLOCKS, str(one)) for one in self.runtimes)

    def announce(self) -> None:
        """Print the effects on jobs, and the TrainJobs that keep a runtime.

        Of each effect, the first.
        """
        for effect, rows in itertools.groupby(self.lines(), lambda row: row[0]):
            texts = [text for _, text in rows]
            for text in texts[:_SHOWN]:
                typer.echo(f"  {effect}: {text}")
            if texts[_SHOWN:]:
                command = _LISTED_BY.get(effect, "trainstack queue")
                typer.echo(f"  {effect}: {len(texts) - _SHOWN} more; `{command}` lists them")
        jobs = self.state.jobs if self.state else ()
        old = sum(job.finished and job.namespace in self.removed.namespaces for job in jobs)
        if old:
            typer.echo(f"  finished jobs that are deleted: {old}")

    def drain(self, *, now: bool) -> None:
        """Stop the jobs that end or stop, and wait for the end of their pods; `now`: without grace period.

        Releases that an interrupted operation has left pending are settled first: the engine could upgrade
        none of them. Raises UserError where the cluster does not allow it.
        """
        if self.cluster is not None:
            if now and self.pending:
                typer.echo("  --now: no engine or provider of the interrupted command may still run")
            limit_s = 0 if now else _HELM_S
            self.halfway[:] = settle(
                self.cluster,
                self.pending,
                lambda line: typer.echo(f"  {line}"),
                limit_s=limit_s,
                state=self.installed,
            )
        if self.cluster is not None and self.removed:
            draining = Draining(
                self.cluster, self.removed, now, lambda line: typer.echo(f"  {line}"), held=self.held
            )
            try:
                draining.stop([one for one in self.effects if one.effect in (ENDS, STOPS)])
            except BaseException:  # also Ctrl-C: nothing is changed yet
                self.release()
                raise

    def repairs(self, engine: EngineStack) -> Iterator[tuple[str, Callable[[OnEvent], OperationOutcome]]]:
        """Titles and operations of the engine after `drain`, before its own: for releases as they are left.

        An uninstall is completed, and what is gone leaves the state: `up` installs what the spec wants.
        """
        if self.halfway:
            yield "interrupted uninstall", self._completed(engine)
        rest = self.installed.keys() - {*self.halfway}
        if self.cluster and (missing := HelmRecords(self.cluster, rest).gone(rest)):
            typer.echo(f"  releases that are gone: {', '.join(f'{space}/{name}' for space, name in missing)}")
            yield "refresh of releases", self._on(engine.refresh, missing)

    def _completed(self, engine: EngineStack) -> Callable[[OnEvent], OperationOutcome]:
        """The uninstalls, with the fix where the engine refuses them, as of a release that others need."""

        def complete(on_event: OnEvent) -> OperationOutcome:
            outcome = self._on(engine.delete, self.halfway)(on_event)
            if not outcome.succeeded and not outcome.interrupted:
                helm = "; ".join(f"helm uninstall {name} --namespace {space}" for space, name in self.halfway)
                fix = f"Run `{helm}`, then `trainstack refresh`, then repeat the command."
                rule = "the uninstall was interrupted, and the engine does not complete it"
                names = ", ".join(f"{space}/{name}" for space, name in self.halfway)
                outcome.errors.append(str(Problem(names, None, rule, fix, code="uninstall-interrupted")))
            return outcome

        return complete

    def _on(
        self, operation: Callable[..., OperationOutcome], releases: Iterable[Identity]
    ) -> Callable[[OnEvent], OperationOutcome]:
        targets = [self.installed[one] for one in releases]
        return lambda on_event: operation(on_event, targets=targets)

    def release(self) -> None:
        """Let go on what `drain` has stopped, and nothing that another operation has."""
        _resume(self.cluster, self.held)


@contextlib.contextmanager
def jobs_in_use(
    engine: EngineStack, rehearsal: Rehearsal | None, spec: StackSpec | None
) -> Iterator[JobsInUse]:
    """The jobs of the stack as it is deployed, before it becomes that of `spec`; None: before its end."""
    with contextlib.ExitStack() as open_until_end:
        try:
            found = _found(engine, rehearsal, spec, open_until_end)
        except UserError as error:
            found = JobsInUse(unknown="; ".join(str(problem) for problem in error.problems))
        yield found


def resume_queues(engine: EngineStack, rehearsal: Rehearsal | None) -> None:
    """Let queues go on that this operation, or an interrupted one before it, has stopped."""
    with contextlib.ExitStack() as open_until_end, contextlib.suppress(UserError):
        _resume(_connected(_exported(engine), rehearsal, open_until_end))


def _resume(cluster: ClusterApi | None, only: Collection[str] | None = None) -> None:
    if cluster is not None and (names := resume(cluster, only)):
        typer.echo(f"  queues that go on: {', '.join(names)}")


def _found(
    engine: EngineStack, rehearsal: Rehearsal | None, spec: StackSpec | None, until: contextlib.ExitStack
) -> JobsInUse:
    exported = _exported(engine)
    if job_outputs.is_of_jobs(exported):
        return _managed(_parsed(job_outputs.parse, exported), rehearsal, spec)
    cluster = _connected(exported, rehearsal, until)
    if cluster is None:
        return JobsInUse()
    from stacks.queues import network_names, queue_objects, runtime_names  # noqa: PLC0415 - seconds of SDKs

    wanted: Sequence[Any] = queue_objects(spec) if spec else ()
    state = read(cluster, None)
    removed = removal(state, wanted)
    resources = engine.resources()
    kept = installed(resources)
    records = HelmRecords(cluster, kept.keys() | {(one.namespace, name) for name, one in charts().items()})
    lost = lost_runtimes(resources, runtime_names(spec)) if spec else set[str]()
    named, unknown = _runtimes(cluster, removed, lost) if removed.flavors or lost else ([], "")
    networks = lost_networks(resources, network_names(spec)) if spec else set[str]()
    ended = [*effects(state, removed, wanted, networks)]
    return JobsInUse(
        cluster,
        state,
        removed,
        ended,
        runtimes=named,
        partly_unknown=unknown,
        pending=records.pending() if spec else (),  # Helm uninstalls pending ones too
        installed=kept,
        gone=records.gone(kept),
    )


def _managed(found: job_outputs.JobOutputs, rehearsal: Rehearsal | None, spec: StackSpec | None) -> JobsInUse:
    """The runs of a stack without a cluster."""
    with job_service(found, rehearsal) as service, answered():
        losses = [*identity_losses(found, spec, service.jobs(running=True))]
    denied = f"{service.unseen} runs: your login is not allowed to read them" if service.unseen else ""
    return JobsInUse(losses=losses, partly_unknown=denied)


def _runtimes(cluster: ClusterApi, removed: Removal, lost: Collection[str]) -> tuple[list[RuntimeUse], str]:
    """TrainJobs that keep runtimes of removed pools, and the reason why they are not known.

    Without them the jobs of the queues are drained all the same: `up` then fails at the runtime, by name.
    """
    try:
        bodies = listed(cluster, "/apis/trainer.kubeflow.org/v1alpha1/trainjobs")
    except ListRefusedError as error:
        # 404: Kubeflow Trainer is not installed.
        return [], "" if error.answer.status == _MISSING else f"TrainJobs: {error}"
    return [*runtime_uses(bodies, removed, lost)], ""


def _exported(engine: EngineStack) -> dict[str, Any]:
    return {key: output.value for key, output in engine.outputs().items()}


def _parsed(parse: Callable[[Mapping[str, Any]], _Outputs], found: Mapping[str, Any]) -> _Outputs:
    """The record in the outputs. Raises UserError for one of another version, which `up` replaces."""
    try:
        return parse(found)
    except ValueError as error:
        rule, fix = "were written by another version of trainstack", "`trainstack up` writes them anew."
        code = "outputs-of-another-version"
        raise UserError([Problem("outputs", None, rule, fix, code=code)]) from error


def _connected(
    found: Mapping[str, Any], rehearsal: Rehearsal | None, until: contextlib.ExitStack
) -> ClusterApi | None:
    """The cluster of a stack with these outputs; None without one, or where Kubernetes is emulated."""
    if outputs.KEY not in found or job_outputs.is_of_jobs(found) or slurm_outputs.is_of_slurm(found):
        return None
    if manager_outputs.is_of_manager(found):
        login = _parsed(manager_outputs.parse, found).kubeconfig
    else:
        login = _parsed(outputs.parse, found).kubeconfig
    if rehearsal is None:
        config = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="trainstack-")), "kubeconfig")
        config.write_text(login)
    elif real_cluster(rehearsal.home):
        config = admin_kubeconfig(rehearsal.home, login)
    else:
        return None
    return until.enter_context(connected(None, config, writing=True))
