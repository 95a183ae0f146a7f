"""Times `fleet preview` of rehearsed clients against their previews one after the other.

    .venv/bin/python benchmarks/clients/fleet.py [clients] [workers] [pairs]    # 0 pairs: the fleet alone

Clients are folders of small stacks on AWS. A pair is the previews one after the other, as a user of a shell
runs them, and then the fleet. Seconds of wall time and of processor time (the machine's, and that of the
processes of the run), and the largest sum of proportional set sizes (PSS) of all of them, sampled. Processes
of others slow both: the ratio of a pair counts, and the time that processors were busy with others is shown.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.trainstack.fleet.agency import add_client, stack_of, write_fleet  # noqa: E402

_MAIN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from trainstack.cli import main; main()"
_SAMPLE_S = 1.0


@dataclass(frozen=True)
class Measured:
    """Wall seconds, processor seconds of all processes of the machine and of the run, peak in MB."""

    wall: float
    machine: float
    own: float
    peak_mb: float


class Watch:
    """Samples the processes whose command, environment or folder names a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ended = str(folder), threading.Event()
        self.peak = 0.0
        self.cpu: dict[tuple[int, float], float] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            total = 0.0
            for one in psutil.process_iter():
                try:
                    if one.pid == os.getpid() or not self._is_own(one):
                        continue
                    total += one.memory_full_info().pss
                    times = one.cpu_times()
                    self.cpu[one.pid, one.create_time()] = times.user + times.system
                except (psutil.Error, OSError):
                    continue
            self.peak = max(self.peak, total / 1e6)

    def _is_own(self, process: psutil.Process) -> bool:
        return process.cwd().startswith(self._folder) or self._folder in " ".join(process.cmdline())


def measured(folder: Path, commands: list[tuple[list[str], Path]]) -> Measured:
    """Run commands one after the other."""
    watch, start, before = Watch(folder), time.perf_counter(), psutil.cpu_times()
    for words, cwd in commands:
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *words, "--rehearse", "--format", "json"],
            cwd=cwd, check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode or not json.loads(done.stdout):
            sys.exit(f"{words} in {cwd}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    wall, after = time.perf_counter() - start, psutil.cpu_times()
    watch.end()
    machine = sum(after[index] - before[index] for index in (0, 1, 2))  # user, nice, system
    return Measured(wall, machine, sum(watch.cpu.values()), watch.peak)


def shown(title: str, run: Measured) -> Measured:
    """Print a line about a run."""
    others = f"{run.machine:.0f} s with others"
    print(
        f"{title}: {run.wall:.1f} s; processors {run.own:.0f} s, {others}; {run.peak_mb:.0f} MB", flush=True
    )
    return run


def main() -> None:
    """Print a line per run, and the ratio of each pair."""
    clients, workers, pairs = (int(one) for one in (*sys.argv[1:], *("4", "3", "1")[len(sys.argv) - 1 :]))
    base = Path(tempfile.mkdtemp(prefix="fleet-"))
    names = [f"client{number:02}" for number in range(clients)]
    for name in names:
        add_client(base, name)
    write_fleet(base, [{"name": name} for name in names])
    preview = ["preview", "--policy-pack", ".trainstack/policies"]
    apart = [([*preview, "-s", stack_of(name)], base / name) for name in names]
    together = [(["fleet", "preview", "--fresh", "--workers", str(workers)], base)]
    measured(base, apart[:1])  # compiles what others find compiled
    try:
        for _ in range(pairs):
            one_by_one = shown(f"{clients} clients, one after the other", measured(base, apart))
            fleet = shown(f"{clients} clients, fleet, {workers} workers", measured(base, together))
            print(f"ratio {one_by_one.wall / fleet.wall:.2f}")
        if not pairs:
            shown(f"{clients} clients, fleet, {workers} workers", measured(base, together))
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
