"""The last resort, and what keeps the launcher's clocks honest."""

import ast
import subprocess
import sys
import threading
import time
from pathlib import Path

from smoke_training.runtime.control.session import ObservedTime
from smoke_training.runtime.guard import LastResort

SOURCES = Path(__file__).resolve().parents[3] / "smoke_training"
# What may read the wall clock: stamps for people, the tracking server's own times, the age of files.
STAMPS = ("runtime/output.py:", "runtime/ending.py:", "record/", "runtime/files.py:")


def test_the_last_resort_acts_when_the_time_has_come_and_only_then() -> None:
    acted = threading.Event()
    with LastResort(time.monotonic() + 0.05, acted.set):
        assert acted.wait(5)
    quiet = threading.Event()
    with LastResort(time.monotonic() + 0.2, quiet.set):
        pass
    assert not quiet.wait(0.5)


def test_a_main_thread_that_is_held_up_does_not_hold_up_the_last_resort() -> None:
    code = (
        "import os, time\n"
        "from smoke_training.runtime.guard import LastResort\n"
        "with LastResort(time.monotonic() + 0.2, lambda: os._exit(3)):\n"
        "    read, _ = os.pipe()\n"
        "    os.read(read, 1)\n"  # as a write to a file server that hangs
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=20, check=False, cwd=SOURCES.parent)
    assert done.returncode == 3


def test_observed_time_does_not_count_pauses() -> None:
    clock = ObservedTime()
    assert clock.at(100.0) == 0.0
    assert clock.at(100.5) == 0.5
    assert clock.at(4000.0) == 1.5
    assert clock.at(3000.0) == 1.5  # not even a clock that runs backwards


def wall_clocks(path: Path) -> list[str]:
    """Calls of one module that read the wall clock."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in ("time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "time.ctime"):
                found.append(f"{path.relative_to(SOURCES)}:{node.lineno} {name}")
    return found


def test_no_duration_is_taken_from_the_wall_clock() -> None:
    assert wall_clocks(SOURCES / "runtime" / "output.py")  # the search finds what there is
    found = [call for path in sorted(SOURCES.rglob("*.py")) for call in wall_clocks(path)]
    assert [call for call in found if not call.startswith(STAMPS)] == []
