"""Stand-ins for the product in tests of the laboratory."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.faults.injector import Injector
from tests.faults.lab import Lab, Run
from tests.faults.network import Wires

TWO_RAILS = Wires(rails=("eth0", "eth1"))


def run_of(lab: Lab) -> Run:
    """A run in which the product has not been started."""
    return Run(lab=lab, began=time.monotonic(), launchers={})


@contextlib.contextmanager
def injected(lab: Lab, injector: Injector) -> Iterator[Run]:
    try:
        injector.install(lab)
        yield run_of(lab)
    finally:
        injector.remove(lab)


def stand_in(lab: Lab, node: int, script: str, **environment: str | None) -> "subprocess.Popen[bytes]":
    """A process on a node in the place of a rank or a launcher."""
    words = lab.nodes[node].argv(sys.executable, "-c", script)
    changed = {**lab.environment(lab.nodes[node]), **environment}
    return subprocess.Popen(words, env={key: value for key, value in changed.items() if value is not None})
