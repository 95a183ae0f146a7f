"""The queue of a Slurm system in the form of the queue of a cluster."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from infra.slurm import SlurmSystem
from trainstack.queues import fragmentation
from trainstack.queues.estimates import Estimate
from trainstack.queues.pools import Pool
from trainstack.queues.positions import Place
from trainstack.queues.report import Report, Running, Waiting
from trainstack.slurm.jobs import SlurmJob, SlurmNode, SlurmState
from trainstack.slurm.reasons import NODES_DOWN, code_of, reason

# Reasons of jobs that wait for nodes in the order of their priority. Others let later jobs pass.
_IN_LINE = ("Resources", "Priority", "None", NODES_DOWN)


def report(system: SlurmSystem, state: SlurmState, only: str | None = None) -> Report:
    """Running and waiting jobs and partitions with GPUs; `only`: one account."""
    teams = {one.name: one.team for one in system.accounts}
    standing = _places(state.jobs)
    seen = [one for one in state.jobs if only in (None, one.account)]
    starting = [one for one in seen if one.state == "CF"]
    waiting = sorted((one for one in seen if one.waiting), key=lambda one: (one.partition, *_turn(one)))
    return Report(
        stack=system.cluster,
        taken=state.taken,
        running=tuple(_running(one, teams) for one in seen if not one.waiting and one.state != "CF"),
        waiting=tuple(_waiting(one, state, teams, standing) for one in [*starting, *waiting]),
        pools=tuple(_pools(state)),
        notes=state.gaps,
    )


def _turn(job: SlurmJob) -> tuple[int, float, str]:
    return -job.priority, job.submitted.timestamp(), job.id


def _places(jobs: Iterable[SlurmJob]) -> Mapping[str, int]:
    """Places, from 1, of jobs that wait for nodes, by priority in their partition.

    A job of several stands in the line of each; its place is the best of them.
    """
    found: dict[str, int] = {}
    counted: Counter[str] = Counter()
    for one in sorted((one for one in jobs if one.waiting), key=_turn):
        if one.priority and code_of(one) in _IN_LINE:
            counted.update(one.partitions)
            found[one.id] = min(counted[name] for name in one.partitions)
    return found


def _name(job: SlurmJob) -> str:
    return f"{job.id} {job.name}"


def _running(job: SlurmJob, teams: Mapping[str, str]) -> Running:
    since = job.starts or job.submitted
    team = teams.get(job.account, job.account)
    return Running(_name(job), team, job.gpus, job.partitions, since, job.ends)


def _waiting(
    job: SlurmJob, state: SlurmState, teams: Mapping[str, str], standing: Mapping[str, int]
) -> Waiting:
    place = standing.get(job.id)
    # After a requeue or with --begin it is the begin time, no plan.
    planned = job.starts if job.waiting and code_of(job) != "BeginTime" else None
    return Waiting(
        job=_name(job),
        team=teams.get(job.account, job.account),
        gpus=job.gpus,
        queue=job.qos,
        since=job.submitted,
        place=Place(place, reported=True) if place else None,
        estimate=Estimate("simulated", planned, 0) if planned else None,
        reason=reason(job, state, place - 1 if place else 0),
    )


def _pools(state: SlurmState) -> Iterator[Pool]:
    parts: dict[str, list[SlurmNode]] = {}
    for one in state.nodes:
        if one.gpus:
            parts.setdefault(one.partition, []).append(one)
    for name, nodes in sorted(parts.items()):
        jobs = [one for one in state.jobs if name in one.partitions and one.gpus]
        usable = [one for one in nodes if one.usable]
        free = [one.gpus - one.used for one in usable]
        asked = Counter(
            fragmentation.Shape(one.nodes, -(-one.gpus // one.nodes)) for one in jobs if one.nodes
        )
        yield Pool(
            name=name,
            gpus=sum(one.gpus for one in nodes),
            # Of all jobs on the nodes: another partition may have the same nodes.
            used=sum(one.used for one in nodes),
            nodes=len(usable),
            on_nodes=sum(one.gpus for one in usable),
            free_on_nodes=sum(free),
            largest_free=max(free, default=0),
            fragmentation=fragmentation.of_pods(free, asked),
            stranded=fragmentation.of_jobs([free], asked),
        )
