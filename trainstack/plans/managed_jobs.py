"""Runs of a managed service whose identity a change of the stack takes away (pure)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from infra.jobs.report import machines
from infra.jobs.service import JobState, ServiceJob
from infra.outputs.jobs import JobOutputs
from infra.stackspec import StackSpec
from infra.stackspec.layouts import SmallLayout

LOSES: Final = "job loses its identity"
"""Effect on a run: it goes on, is billed, and can neither read data nor save."""


@dataclass(frozen=True)
class IdentityLoss:
    """A run whose identity the change deletes, or which loses the folders that the run writes."""

    job: ServiceJob
    why: str

    def __str__(self) -> str:
        job = self.job
        fix = f"Wait until `trainstack runs -s {job.stack}` shows its end"
        if job.state is JobState.RUNNING:
            fix += f", or `trainstack stop {job.name} -s {job.stack}` first"
        return f"{job.name} ({machines(job)}, {job.phase}): {self.why}. {fix}"


def identity_losses(
    outputs: JobOutputs, spec: StackSpec | None, jobs: Iterable[ServiceJob]
) -> Iterator[IdentityLoss]:
    """The runs among `jobs` whose people the spec removes or moves; None: the stack is destroyed.

    Runs that are stopping as well: they still save their last checkpoint and results. Deleting a role breaks
    programs that run with it (DeleteRole, IAM API reference); tokens of a deleted service account are refused
    likewise.
    """
    kept = dict(_folders(spec))
    before = {one.name: one.folder for one in outputs.people}
    for job in jobs:
        if job.state.over:
            continue
        if spec is None:
            yield IdentityLoss(job, "the stack is destroyed")
        elif job.person not in before:  # the stack's own validation, or a person who is gone already
            continue
        elif job.person not in kept:
            yield IdentityLoss(job, f"person {job.person} is removed")
        elif kept[job.person] != before[job.person]:
            lost = f"teams/{before[job.person]}/"
            yield IdentityLoss(job, f"person {job.person} moves to another team, without access to {lost}")


def _folders(spec: StackSpec | None) -> Iterator[tuple[str, str]]:
    """People of a spec, with the folder of their team."""
    if spec is not None and isinstance(spec.layout, SmallLayout):
        folders = {team.name: team.data_folder for team in spec.teams}
        yield from ((one.name, folders[one.team]) for one in spec.layout.people)
