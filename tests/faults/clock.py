"""A wall clock that jumps during the run.

Linux has no namespace for the wall clock (time namespaces shift only the monotonic and boot clocks), and
setting the real one would hit the whole machine. So the C library's clock calls of one node's processes are
overridden.
"""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults import system
from tests.faults.injector import Injector, InjectorError, plugin_path
from tests.faults.lab import Lab, Run


def missing() -> str | None:
    """Why no clock can jump here, or None."""
    return None if shutil.which("cc") or shutil.which("gcc") else "needs a C compiler"


@dataclass
class ClockJump(Injector):
    """The wall clock of one node jumps by `by_s` seconds, `after_s` seconds after the start of the run."""

    node: int = 1
    by_s: int = -3600
    after_s: float = 8.0

    def install(self, lab: Lab) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise InjectorError("needs a C compiler")
        source = str(plugin_path("clock") / "jump.c")
        system.command(compiler, "-shared", "-fPIC", "-O1", "-o", str(self._library(lab)), source)
        self._at = time.monotonic() + self.after_s
        self._proof(lab).unlink(missing_ok=True)
        self._shows_elsewhere(lab)

    def _shows_elsewhere(self, lab: Lab) -> None:
        """A neutral program on the node must read the changed clock once the moment has come."""
        environment = [f"{key}={value}" for key, value in self._variables(lab, at=0.0).items()]
        shown = int(lab.nodes[self.node].command("env", *environment, "date", "+%s"))
        self._proof(lab).unlink(missing_ok=True)
        if abs(shown - time.time() - self.by_s) > 5:
            raise InjectorError(f"date says {shown - time.time():.0f} s off, {self.by_s} wanted")

    def _variables(self, lab: Lab, at: float) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library(lab)),
            "TSLAB_CLOCK_AT": str(at),
            "TSLAB_CLOCK_BY": str(self.by_s),
            "TSLAB_CLOCK_PROOF": str(self._proof(lab)),
        }

    def _library(self, lab: Lab) -> Path:
        return lab.home / "jump.so"

    def _proof(self, lab: Lab) -> Path:
        return lab.home / "proof-clock"

    def environment(self, lab: Lab, node: int) -> Mapping[str, str | None]:
        return self._variables(lab, self._at) if node == self.node else {}

    def prove(self, run: Run) -> str:
        proof = self._proof(run.lab)
        count = len(proof.read_text().splitlines()) if proof.exists() else 0
        if not count:
            raise InjectorError(f"no process of node {self.node} read the clock after its jump")
        return f"{count} processes of node {self.node} read a clock that had jumped by {self.by_s} s"
