import os
import subprocess
import sys
from pathlib import Path

import smoke_training
from smoke_training.__main__ import ERROR, STOPPED

# Loaded by Python itself; interrupts the process while it still imports the program.
INTERRUPT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "smoke_training.plan":
            # Tests that run in the background of a shell inherit that interrupts are ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def test_ctrl_c_before_a_run_can_write_anything_down_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT)
    root = Path(smoke_training.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "smoke_training", "run", "--ranks", "1", "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{root}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (ERROR, f"{STOPPED}\n")


def test_an_internal_error_is_the_verdict_error_and_no_fail(tmp_path: Path) -> None:
    broken = "import smoke_training.cli.judge as judge\njudge.main = lambda _chosen: 1 // 0\n"
    (tmp_path / "sitecustomize.py").write_text(broken)
    root = Path(smoke_training.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "smoke_training", "judge", "samples"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{root}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == ERROR
