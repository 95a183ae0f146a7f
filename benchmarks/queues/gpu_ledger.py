"""The ledger's book against the sum of what jobs held, over restarts of its program.

    python benchmarks/queues/gpu_ledger.py [JOBS] [KILLS]

A real control plane with Kueue; nodes and pods are KWOK's. JOBS jobs of 1 to 8 GPUs (a tenth with two pods)
in two teams last 1 to 8 s each; meanwhile the program is killed (SIGKILL) KILLS times and started again. A
watcher of its own sees every change of every Workload and pod, and adds up what was held by the times of the
transitions of `Admitted` and `Finished` and of pods that are done. Finished jobs stay until the end.
The binaries have to be built: `make binaries`.
"""

import functools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from components.kubernetes.accounting.ledger import Book
from components.kubernetes.queueing import kueue_values
from rehearsal.controlplane.api import Api
from rehearsal.controlplane.order import Order, running
from tests.cluster.accounting.standing import Standing, ledger
from tests.cluster.accounting.watcher import Watcher
from tests.cluster.queues.lab import Lab, flavor, machines, queues

JOBS, KILLS = 500, 4
POOL, NODES = "ledger-a100", 32
TEAMS = ("One", "Two")
PATIENCE_S = 3600.0


def main() -> None:
    """Print what the books and the watcher say, and the difference."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    flavors = [flavor(POOL, "p4d.24xlarge", NODES)]
    teams: Any = [{"name": name, "weight": 1} for name in TEAMS]
    addons = {"kueue": kueue_values.values(claimed={}), "jobset": {}}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Order(Path(folder) / "run", addons=addons)) as plane,
        plane.api() as api,
        machines(api, flavors, {POOL: "p4d.24xlarge"}),
        queues(api, flavors, teams) as lab,
        ledger(api, Path(folder), [*lab.namespaces.values()]) as standing,
    ):
        print(json.dumps(_measured(lab, standing, jobs, kills), indent=2))


def _measured(lab: Lab, standing: Standing, jobs: int, kills: int) -> Mapping[str, Any]:
    watcher, began = Watcher(lab.api), time.monotonic()
    standing.start()
    submitting = threading.Thread(target=_submit, args=(lab, jobs))
    submitting.start()
    most_kib = 0
    for number in range(1, kills + 2):
        _until(functools.partial(_finished, watcher, jobs * number // (kills + 1)))
        most_kib = max(most_kib, _memory_kib(standing))
        if number <= kills:
            standing.again()
    submitting.join()
    books = _settled(standing)
    watcher.stop()
    held = {name: sum(row.held_s for row in book.totals()) for name, book in books.items()}
    seen = Counter[str]()
    for (namespace, _), amount in watcher.held.items():
        seen[namespace] += amount
    ran = sum(row.running_s for book in books.values() for row in book.totals())
    return {
        "jobs": jobs,
        "kills": kills,
        "seconds": round(time.monotonic() - began),
        "held GPU-seconds, books": sum(held.values()),
        "held GPU-seconds, watcher": sum(watcher.held.values()),
        "equal in every namespace": held == dict(seen),
        "running GPU-seconds, books": ran,
        "GPU-seconds of pods from start to end": sum(watcher.pods.values()),
        "uncertain GPU-seconds": sum(sum(book.uncertain.values()) for book in books.values()),
        "memory of the program, MiB": round(most_kib / 1024),
        "largest book, KiB": round(max(len(book.text()) for book in books.values()) / 1024),
    }


def _finished(watcher: Watcher, jobs: int) -> bool:
    return len(watcher.finished) >= jobs


def _submit(lab: Lab, jobs: int) -> None:
    with Api(lab.api.access) as api:
        own = Lab(api, lab.namespaces)
        for index in range(jobs):
            pods, gpus = (2, 1 + index % 4) if index % 10 == 0 else (1, 1 + index % 8)
            own.submit(TEAMS[index % 2], f"job-{index}", gpus=gpus, pods=pods, seconds=1 + index % 8)


def _settled(standing: Standing) -> Mapping[str, Book]:
    """The books once no attempt is open in any."""
    found: dict[str, Book] = {}

    def closed() -> bool:
        books = {name: standing.book(name) for name in standing.namespaces}
        found.update({name: book for name, book in books.items() if book and not book.open and book.rows})
        return len(found) == len(books)

    _until(closed)
    return found


def _until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"did not get there in {PATIENCE_S:.0f} s")
        time.sleep(0.5)


def _memory_kib(standing: Standing) -> int:
    """The most memory that the program had, by the kernel."""
    assert standing.process
    text = Path(f"/proc/{standing.process.pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main()
