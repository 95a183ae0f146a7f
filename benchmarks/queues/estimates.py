"""Estimated starts of jobs compared with the actual ones, on a real Kueue with nodes of KWOK.

    python benchmarks/queues/estimates.py [JOBS] [SEED] [TEAMS]

Teams (2) share 64 GPUs. Jobs come at random (exponential gaps), ask for 4 or 8 GPUs, run for a lognormal
time, and name a deadline of one to two times that, and 6 s more. The queue is read as `trainstack queue`
does, every second. The first estimates of a job count: the bound from past waits of every job, the simulated
start of those that are seen waiting. The binaries have to be built: `make binaries`.
"""

import datetime
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from components.kubernetes.queueing import kueue_values
from infra.clouds.kubectl import ClusterApi, connected
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from trainstack.queues import history, simulation
from trainstack.queues.bound import wait_bound
from trainstack.queues.reading import read
from trainstack.queues.report import MAX_EXEC_TIME
from trainstack.queues.state import State

JOBS, SEED = 240, 1
TEAMS = ("Research", "Vision")
GAP_S, MEDIAN_S, SIGMA = 1.7, 7.0, 0.5
SIZES, POPULAR = (4, 8), (0.15, 0.85)
POOL = flavor("any", "p4d.24xlarge", 8)
PATIENCE_S = 300.0
START_S = 6.0  # until pods run, on a machine that does other work


@dataclass
class Guess:
    """First estimate for a job, and its actual start."""

    seen: datetime.datetime
    created: datetime.datetime
    simulated: datetime.datetime | None
    bound: datetime.timedelta | None
    admitted: datetime.datetime | None = None


@dataclass
class Watched:
    """All guesses, by job."""

    guesses: dict[tuple[str, str], Guess] = field(default_factory=dict)
    """By the identity of the job."""
    ended: int = 0
    evictions: int = 0

    def look(self, state: State) -> None:
        """Estimate new jobs, and record admitted ones."""
        result, past = simulation.starts(state) or {}, history.waits(state.jobs)
        for job in state.jobs:
            if job.key not in self.guesses:
                bound = wait_bound(past.get(history.kind(job), ()), state.taken)
                self.guesses[job.key] = Guess(
                    state.taken, job.created, result.get(job.key), bound.wait if bound else None
                )
            guess = self.guesses[job.key]
            if guess.admitted is None and job.is_("Admitted"):
                guess.admitted = job.conditions["Admitted"].since
        self.ended = sum(job.finished or not job.active for job in state.jobs)
        self.evictions = sum(job.evictions for job in state.jobs)


@dataclass(frozen=True)
class Coming:
    """A job of the stream; times in seconds."""

    at: float
    team: str
    gpus: int
    runs: float
    deadline: float


def stream(jobs: int, seed: int, teams: int) -> Iterator[Coming]:
    """The jobs in the order in which they come."""
    chance, at = random.Random(seed), 0.0
    for _ in range(jobs):
        at += chance.expovariate(1 / GAP_S)
        (gpus,) = chance.choices(SIZES, POPULAR)
        runs = chance.lognormvariate(0.0, SIGMA) * MEDIAN_S
        team = chance.choice(TEAMS[:teams])
        yield Coming(at, team, gpus, round(runs, 1), runs * chance.uniform(1, 2) + START_S)


def submit(lab: Lab, name: str, one: Coming) -> None:
    """A job of pods with up to eight GPUs each."""
    pods = max(one.gpus // 8, 1)
    labels = {MAX_EXEC_TIME: str(math.ceil(one.deadline))}
    lab.submit(one.team, name, gpus=one.gpus // pods, pods=pods, seconds=one.runs, labels=labels)


def watch(lab: Lab, cluster: ClusterApi, coming: list[Coming]) -> Watched:
    """Let the jobs come, and look every second until all have ended."""
    watched, began = Watched(), time.monotonic()
    jobs, last = len(coming), coming[-1].at
    while watched.ended < jobs:
        now = time.monotonic() - began
        if now > last + PATIENCE_S:
            raise TimeoutError(f"{jobs - watched.ended} jobs have not ended in {now:.0f} s")
        while coming and coming[0].at <= now:
            submit(lab, f"job-{jobs - len(coming)}", coming.pop(0))
        watched.look(read(cluster, None))
        time.sleep(max(0.0, 1.0 - (time.monotonic() - began - now)))
    return watched


def report(watched: Watched, runs_s: float) -> None:
    """Print how far estimates were off, and how often bounds held."""
    known = [(one, one.admitted) for one in watched.guesses.values() if one.admitted is not None]
    waited = [(one, admitted) for one, admitted in known if admitted > one.seen]
    left = statistics.median((admitted - one.seen).total_seconds() for one, admitted in waited)
    print(f"{len(waited)} of {len(known)} jobs were seen waiting, and waited {left:.1f} s more (median)")
    print(f"a job runs {runs_s:.1f} s on average; {watched.evictions} evictions")
    errors = [(admitted - one.simulated).total_seconds() for one, admitted in waited if one.simulated]
    off = [abs(error) for error in errors]
    late = sum(error > 1 for error in errors) / len(errors)
    median, most = statistics.median(off), statistics.quantiles(off, n=10)[-1]
    print(f"simulated starts: {len(errors)}, {late:.0%} of them started later")
    print(
        f"  absolute error: median {median:.1f} s ({median / runs_s:.2f} run times), 90 % within {most:.1f} s"
    )
    bounds = [(admitted - one.created, one.bound) for one, admitted in known if one.bound is not None]
    if bounds:
        held = sum(waited <= bound for waited, bound in bounds) / len(bounds)
        median = statistics.median(bound.total_seconds() for _, bound in bounds)
        print(f"bounds from past waits: {len(bounds)}, {held:.0%} of them held (95 % wanted)")
        print(f"  the median bound was {median:.0f} s")
    print(f"neither was known: {sum(not (one.simulated or one.bound) for one, _ in waited)}")


def main() -> None:
    """Run the stream once."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    values = kueue_values.values(claimed={})
    teams = int(sys.argv[3]) if len(sys.argv) > 3 else len(TEAMS)
    coming = list(stream(jobs, seed, teams))
    with (
        tempfile.TemporaryDirectory() as folder,
        running(ControlPlaneOptions(Path(folder) / "run", addons={"jobset": {}, "kueue": values})) as plane,
        plane.api() as api,
        machines(api, [POOL], {"any": "p4d.24xlarge"}),
        queues(api, [POOL], [{"name": name, "weight": 1.0} for name in TEAMS[:teams]]) as lab,
        connected(None, plane.kubeconfig) as cluster,
    ):
        watched = watch(lab, cluster, list(coming))
        report(watched, statistics.mean(one.runs for one in coming))


if __name__ == "__main__":
    main()
