"""The ledger's book against the sum of what jobs held, over restarts of its program.

    python benchmarks/queues/gpu_ledger.py [JOBS] [KILLS]

A real control plane with Kueue; nodes and pods are KWOK's. JOBS jobs of 1 to 8 GPUs (a tenth with two pods)
in two teams last 1 to 8 s each; meanwhile the program is killed (SIGKILL) KILLS times and started again. A
watcher of its own sees every change of every Workload and pod, and adds up what was held by the times of the
transitions of `Admitted` and `Finished` and of pods that are done. Finished jobs stay until the end.
The binaries have to be built: `make binaries`.

On two cores, 10,000 jobs take 55 minutes (3.1 a second, other work beside it for 12 of them). Kill at least
once then: a login is good for an hour. It ends with an error after two hours, and reports every half a minute
how far it is. What takes the time is the API server: some 37 writes a job, 0.37 s of a core with all that
watch them; KWOK takes 2 % of that. As Kubernetes starts them, its controllers send 20 requests a second,
and a Job takes 11 of its controller: 1.9 jobs a second, whatever the machine. So they may send more here,
and jobs are made as others end.
"""

import contextlib
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agents.gpu_ledger import book_text
from agents.gpu_ledger.attempts import PROJECT_LABEL
from agents.gpu_ledger.books import CHANGED_S
from agents.gpu_ledger.ledger import TeamBook
from components.kubernetes.queueing import kueue_values
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running
from tests.cluster.accounting.ledger_program import Standing, ledger
from tests.cluster.accounting.usage_watcher import Watcher
from tests.cluster.queues.lab import Lab, flavor, machines, queues

JOBS, KILLS = 500, 4
POOL, NODES = "ledger-a100", 32
TEAMS = ("One", "Two")
# The ends of the pods of one job are known only if they were observed: such jobs are listed separately.
SINGLES, PAIRS = "singles", "pairs"
# Jobs that are made and not finished: twice what fits, so that jobs wait and are preempted. With all of them
# in the queue at once, Kueue would look at each whenever one ends, and write why it waits.
AHEAD = 120
# Each Job takes 11 requests of its controller, which may send 20 a second by itself.
CONTROLLER_REQUESTS_PER_S = 200
# The whole run; the watcher's one watch lasts for two hours.
PATIENCE_S = 7000.0
# Longer than the ledger takes to write a book that changed, and one that began anew to read all Workloads.
SETTLED_S = 2 * CHANGED_S + 5
# How often the state is looked at, and reported.
POLL_S, REPORT_S = 0.5, 30.0


def main() -> None:
    """Print what the books and the watcher say, and the difference."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    flavors = [flavor(POOL, "p4d.24xlarge", NODES)]
    teams: Any = [{"name": name, "weight": 1} for name in TEAMS]
    addons = {"kueue": kueue_values.values(claimed={}), "jobset": {}}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(_order(Path(folder), addons)) as plane,
        plane.api() as api,
        machines(api, flavors, {POOL: "p4d.24xlarge"}),
        # What is left ends with the control plane.
        queues(api, flavors, teams, stays=True) as lab,
        ledger(api, Path(folder), [*lab.namespaces.values()]) as standing,
    ):
        print(json.dumps(_measured(lab, standing, jobs, kills), indent=2))


def _order(folder: Path, addons: Mapping[str, Mapping[str, Any]]) -> ControlPlaneOptions:
    return ControlPlaneOptions(
        folder / "run", addons=addons, controller_requests_per_s=CONTROLLER_REQUESTS_PER_S
    )


def _measured(lab: Lab, standing: Standing, jobs: int, kills: int) -> Mapping[str, Any]:
    run = _Run(lab, Watcher(lab.api), jobs)
    standing.start()
    most_kib = 0
    with ThreadPoolExecutor(1) as pool, run.ending():
        run.submitting = pool.submit(run.submit)
        for number in range(1, kills + 2):
            run.until(functools.partial(run.finished, jobs * number // (kills + 1)))
            most_kib = max(most_kib, _memory_kib(standing))
            if number <= kills:
                standing.again()
        finished_s = time.monotonic() - run.began
        books = _settled(run, standing, jobs)
    run.watcher.stop()
    return {
        "jobs": jobs,
        "kills": kills,
        "seconds": round(time.monotonic() - run.began),
        "jobs a second": round(jobs / finished_s, 1),
        "evictions": run.watcher.evicted,
        **_compared(books, run.watcher),
        "memory of the program, MiB": round(most_kib / 1024),
        "largest book, KiB": round(max(len(book_text.text(book)) for book in books.values()) / 1024),
    }


def _compared(books: Mapping[str, TeamBook], watcher: Watcher) -> Mapping[str, Any]:
    """Each team's books against what was held: that is at least what is certain, and at most all of it.

    Uncertain are ends of one pod of two, and attempts that were preempted while the ledger was away. Nothing
    should be outside of that.
    """
    held = {
        (name, project): sum(row.held_s for row in book.totals() if row.project == project)
        for name, book in books.items()
        for project in (SINGLES, PAIRS)
    }
    uncertain = {name: sum(book.uncertain.values()) for name, book in books.items()}
    outside = 0
    for name in books:
        sure, seen = (
            sum(each.get((name, project), 0) for project in (SINGLES, PAIRS)) for each in (held, watcher.held)
        )
        outside += max(0, sure - seen, seen - sure - uncertain[name])
    unseen = [note for book in books.values() for note in book.notes if note.what == "uncertain"]
    return {
        **{
            f"held GPU-seconds of {project}, {who}": sum(
                amount for (_, kind), amount in amounts.items() if kind == project
            )
            for project in (SINGLES, PAIRS)
            for who, amounts in (("books", held), ("watcher", watcher.held))
        },
        "singles equal in every namespace": all(
            amount == watcher.held.get(key, 0) for key, amount in held.items() if key[1] == SINGLES
        ),
        "uncertain GPU-seconds": sum(uncertain.values()),
        "jobs with attempts that were not seen": len(unseen),
        "GPU-seconds outside of what is certain and uncertain": outside,
        "running GPU-seconds, books": sum(row.running_s for book in books.values() for row in book.totals()),
        "GPU-seconds of pods from start to end": sum(watcher.pods.values()),
    }


class _Run:
    """Jobs that come as others end, until all are done or the time is over."""

    def __init__(self, lab: Lab, watcher: Watcher, jobs: int) -> None:
        self.watcher, self.began = watcher, time.monotonic()
        self._lab, self._jobs, self._reported_at = lab, jobs, self.began
        self._over = False
        self.submitting: Future[None] | None = None

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """No job is made any more once this is over, however it ends."""
        try:
            yield
        finally:
            self._over = True

    def submit(self) -> None:
        """Make all jobs, each once there are few enough before it. Raises what the API server refuses."""
        with KubernetesApi(self._lab.api.access) as api:
            own = Lab(api, self._lab.namespaces)
            for index in range(self._jobs):
                self._until(functools.partial(self.finished, index + 1 - AHEAD), POLL_S / 10)
                pods, gpus = (2, 1 + index % 4) if index % 10 == 0 else (1, 1 + index % 8)
                project = {PROJECT_LABEL: SINGLES if pods == 1 else PAIRS}
                seconds = 1 + index % 8
                team = TEAMS[index % len(TEAMS)]
                own.submit(team, f"job-{index}", gpus=gpus, pods=pods, seconds=seconds, labels=project)

    def finished(self, jobs: int) -> bool:
        """Whether as many are done."""
        return len(self.watcher.finished) >= jobs

    def until(self, check: Callable[[], bool]) -> None:
        """Wait for it. Raises TimeoutError, and what ended the making of jobs."""

        def done() -> bool:
            if self.submitting and self.submitting.done():
                self.submitting.result()
            if time.monotonic() > self._reported_at + REPORT_S:
                self._reported_at = time.monotonic()
                passed = self._reported_at - self.began
                sys.stderr.write(f"{passed:.0f} s: {len(self.watcher.finished)} of {self._jobs} jobs\n")
            return check()

        self._until(done, POLL_S)

    def _until(self, check: Callable[[], bool], poll_s: float) -> None:
        while not check() and not self._over:
            if time.monotonic() > self.began + PATIENCE_S:
                done = len(self.watcher.finished)
                raise TimeoutError(f"{done} of {self._jobs} jobs were done in {PATIENCE_S:.0f} s")
            if not self.watcher.sees:
                raise RuntimeError("a watch of the second reading ended: there is nothing to compare with")
            time.sleep(poll_s)


def _settled(run: _Run, standing: Standing, jobs: int) -> Mapping[str, TeamBook]:
    """The books once every job is booked, no attempt is open, and nothing came to them for a while.

    They are written some seconds late, and one that was written before a last attempt has none open.
    """
    found: dict[str, TeamBook] = {}
    seen, since = "", time.monotonic()

    def closed() -> bool:
        nonlocal seen, since
        books = {name: standing.book(name) for name in standing.namespaces}
        found.update({name: book for name, book in books.items() if book})
        rows = str([book.rows for book in found.values()])
        if rows != seen:
            seen, since = rows, time.monotonic()
        done = sum(len(book.done) for book in found.values())
        opened = any(book.open for book in found.values())
        return done == jobs and not opened and time.monotonic() > since + SETTLED_S

    run.until(closed)
    return found


def _memory_kib(standing: Standing) -> int:
    """The most memory that the program had, by the kernel."""
    assert standing.process
    text = Path(f"/proc/{standing.process.pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main()
