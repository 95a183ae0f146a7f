"""A neighbour on the same machine that takes a core now and then. Not a fault of training: never a FAIL."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.faults import system
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run
from tests.faults.system import Group

SPIN = """
import os, sys, time
on, off = float(sys.argv[1]), float(sys.argv[2])
cores, turn = sorted(os.sched_getaffinity(0)), 0
while True:
    os.sched_setaffinity(0, {cores[turn % len(cores)]})
    turn += 1
    until = time.monotonic() + on
    while time.monotonic() < until:
        pass
    time.sleep(off)
"""


@dataclass
class NoisyNeighbour(Injector):
    """Bursts of `on_s` seconds on one core after another, `off_s` seconds apart; as heavy as a node."""

    on_s: float = 0.2
    off_s: float = 0.6

    def install(self, lab: Lab) -> None:
        group = Group(f"{lab.name}/neighbour")
        group.make()
        words = [sys.executable, "-I", "-S", "-c", SPIN, str(self.on_s), str(self.off_s)]
        entering = system.entering([group.folder("cpu")])
        self._process = subprocess.Popen([*system.MORTAL, *entering, *words])

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def prove(self, run: Run) -> str:
        taken, share = self._cpu_s() / run.elapsed(), self.on_s / (self.on_s + self.off_s)
        if taken < share / 4:  # on a busy machine the neighbour has to share, too
            raise InjectorError(f"the neighbour had only {taken:.1%} of a core, {share:.0%} wanted")
        return f"a neighbour took {taken:.0%} of a core"

    def remove(self, lab: Lab) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()
            process.wait()
