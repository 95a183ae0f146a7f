"""Hours, queue and running jobs of a stack: from its cluster, its Slurm system, its managed jobs or files."""

import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.errors import Problem, UserError
from trainstack.capacity import classes
from trainstack.capacity.history import LedgerMonth, parsed, read_files
from trainstack.capacity.pools import pools
from trainstack.capacity.report import Live
from trainstack.capacity.reserved import ReservedCapacity
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.scope import ClusterLogin, scope

if TYPE_CHECKING:
    from infra.stackspec.stack import StackSpec

LEDGER = "trainstack.ledger/1"


@dataclass(frozen=True)
class CapacitySource:
    """Hours of a source, and its queue and reservations."""

    found: Sequence[LedgerMonth]
    live: Live | None = None
    """None: a source without a queue."""
    described: Mapping[str, ReservedCapacity] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    """What could not be read; reported after the rest."""


def of_files(spec: "StackSpec", paths: Sequence[Path], command: str) -> CapacitySource:
    """Files of the ledger of this stack; `command`: that writes them."""
    found = read_files(paths)
    if found[0].stack != spec.name:
        rule, fix = f"is of stack {found[0].stack}", f"Write it with `{command} -s {spec.name}`."
        raise UserError([Problem("--ledger", str(paths[0]), rule, fix, code="ledger-of-other-stack")])
    return CapacitySource(found)


def of_slurm(spec: "StackSpec", months: Sequence[str], ssh: str, *, rehearse: bool) -> CapacitySource:
    """Months from `sacct`. Raises UserError where it had no job with GPUs."""
    from infra import slurm  # noqa: PLC0415 - other stacks need none of it
    from trainstack.capacity import sacct  # noqa: PLC0415
    from trainstack.cli.slurm.reached import commands  # noqa: PLC0415

    system = slurm.system(spec, slurm.SystemOptions())
    reached = commands(spec.name, ssh, rehearse=rehearse)
    bodies = sacct.documents(system, reached, months, int(time.time()))
    if not bodies:
        rule, fix = "sacct has no job with GPUs in these months", "Ask for more of them with --months."
        raise UserError([Problem("ledger", spec.name, rule, fix, code="ledger-empty")])
    return CapacitySource([parsed(one, one["month"]) for one in bodies])


def of_cluster(spec: "StackSpec", months: Sequence[str], *, rehearse: bool) -> CapacitySource:
    """Books of all teams, the queue, and problems with books of single teams."""
    from trainstack.capacity import demand  # noqa: PLC0415 - other stacks need none of it
    from trainstack.ledger import books, forms  # noqa: PLC0415
    from trainstack.queues.reading import read  # noqa: PLC0415

    found: list[LedgerMonth] = []
    problems: dict[str, Problem] = {}
    with scope(spec.name, "", ClusterLogin(), rehearse=rehearse) as of:
        for month in months:
            teams: list[books.Month] = []
            for space, name in of.teams.items():
                try:
                    teams.append(books.read(of.cluster.get, name, space, month))
                except UserError as error:
                    problems |= {str(one): one for one in error.problems}
            if teams:
                found.append(_parsed(of.name, month, forms.documents(teams)))
        if not found:
            raise UserError(problems.values())
        state = read(of.cluster, None)
        shares = {pool.flavor: pool.shares for pool in classes.cluster_pools(spec, _today())}
        known = demand.checkpointed(of.cluster, state)
        live = Live(
            demand.demand(state, shares),
            None if known is None else demand.share(state.jobs, known, shares),
            [str(one) for one in state.refusals],
            demand.running(state, known, shares, of.teams),
        )
        return CapacitySource(found, live, problems=[*problems.values()])


def of_managed(spec: "StackSpec", months: Sequence[str], *, rehearse: bool) -> CapacitySource:
    """Jobs of SageMaker or Vertex AI, and plans and reservations of their machines."""
    from infra.jobs.submission import answered  # noqa: PLC0415 - other stacks need none of it
    from trainstack.capacity import managed  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415
    from trainstack.ledger.periods import bounds  # noqa: PLC0415

    now = datetime.datetime.now(datetime.UTC)
    with opened(spec.name, rehearse=rehearse) as at:
        described, problems = of_account(spec)
        with answered():
            jobs = list(at.service.jobs(bounds(months[0])[0]))
        unseen = at.service.unseen
    bodies = managed.documents(spec, pools(spec, now.date(), described), jobs, months, now)
    if not bodies:
        rule = "no job had GPUs in these months, and no plan or reservation has begun"
        fix = "Start one with `trainstack run`, or ask for more months with --months."
        raise UserError([*problems, Problem("ledger", spec.name, rule, fix, code="ledger-empty")])
    found = [parsed(one, one["month"]) for one in bodies]
    return CapacitySource(found, managed.live(spec, jobs, now, unseen), described, problems)


def of_account(spec: "StackSpec") -> tuple[Mapping[str, ReservedCapacity], Sequence[Problem]]:
    """Reservations as clouds describe them, by the path of their pool, and those that could not be read."""
    known = [one for one in pools(spec, _today()) if one.reservation is not None]
    found: dict[str, ReservedCapacity] = {}
    problems: list[Problem] = []
    for cloud in dict.fromkeys(one.cloud for one in known):
        here = [pool for pool in known if pool.cloud == cloud]
        for pool, one in zip(here, services_of(cloud).reservations(here), strict=True):
            if isinstance(one, Problem):
                problems.append(one)
            else:
                found[pool.path] = one
    return found, problems


def _parsed(stack: str, month: str, teams: list[dict[str, Any]]) -> LedgerMonth:
    return parsed({"schema": LEDGER, "stack": stack, "month": month, "teams": teams}, month)


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()
