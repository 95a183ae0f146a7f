"""The last resort, and what keeps the launcher's clocks honest."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from smoke_training.runtime.control.session import ObservedTime

SOURCES = Path(__file__).resolve().parents[3] / "smoke_training"
# What may read the wall clock: stamps for people, the tracking server's own times, the age of files.
STAMPS = (
    *("instrumentation/", "runtime/output.py:", "runtime/ending.py:", "record/", "files.py:"),
    *("runtime/system_metrics.py:", "job/run.py:", "job/mlflow_run.py:", "job/gcp/mirror.py:"),
)


# A node without the GPUs of its plan ends at once; its main thread hangs or not while it writes that down.
NODE = """
import dataclasses, os, sys
from pathlib import Path
from smoke_training.runtime.ending import Ending
from smoke_training.runtime.facts import NodeSettings
from smoke_training.runtime.node import NodeRun
from tests.smoke_training.samples import plan

if sys.argv[2] == "hangs":  # as a write to a file server may
    Ending.conclude = lambda *_: os.read(os.pipe()[0], 1)
home = Path(sys.argv[1])
place = NodeSettings(index=0, master_addr="127.0.0.1", master_port=29500, work_dir=home,
                     result=home / "result.json", termination=home / "message")
sys.exit(NodeRun(dataclasses.replace(plan(nodes=1, gpus_per_node=8), timeout_s=4.0), place).run())
"""


@pytest.mark.parametrize(("main_thread", "code"), [("hangs", 3), ("ends", 1)])
def test_a_launcher_whose_main_thread_hangs_still_ends_in_time(
    tmp_path: Path, main_thread: str, code: int
) -> None:
    command = [sys.executable, "-c", NODE, str(tmp_path), main_thread]
    done = subprocess.run(command, timeout=60, check=False, cwd=SOURCES.parent, stdout=subprocess.PIPE)
    assert done.returncode == code
    assert (b"gave_up" in done.stdout) == (main_thread == "hangs")
    assert ("within 4 s" in (tmp_path / "message").read_text()) == (main_thread == "hangs")


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
