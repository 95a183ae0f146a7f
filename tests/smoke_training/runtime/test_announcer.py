"""A command whose checkpoints are announced: the wrapper of jobs that no `instrument` is in."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smoke_training.runtime.announcement import AnnotationRefusedError
from smoke_training.runtime.announcer import Announcer

ROOT = Path(__file__).resolve().parents[3]


class Server:
    """Takes times, or does not."""

    def __init__(self) -> None:
        self.said: list[float] = []
        self.problem: Exception | None = None
        self.token = True

    def __call__(self, at: float) -> bool:
        if self.problem:
            raise self.problem
        self.said.append(at)
        return self.token


class Loop:
    """A training loop's files, an announcer that settles after 30 s, and its clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.server, self.now = folder, Server(), 0.0
        self.announcer = Announcer(folder, 30, self.server, lambda: self.now)

    def write(self, name: str, at: float) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("tensors")
        os.utime(path, (at, at))

    def after(self, seconds: float) -> list[float]:
        self.now += seconds
        self.announcer.look()
        return self.server.said


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def test_a_checkpoint_is_announced_once_nothing_has_changed_for_a_while(loop: Loop) -> None:
    assert loop.after(10) == []
    loop.write("step-1/rank-0.pt", 1000.0)
    assert loop.after(10) == []
    loop.write("step-1/rank-1.pt", 1025.0)
    assert loop.after(29) == [], "it was still being written"
    assert loop.after(29) == []
    assert loop.after(1) == [1025.0]
    assert loop.after(100) == [1025.0], "once"
    loop.write("step-2/rank-0.pt", 2000.0)
    loop.after(1)
    assert loop.after(30) == [1025.0, 2000.0]


def test_what_another_run_left_and_what_is_deleted_are_no_new_checkpoint(tmp_path: Path) -> None:
    Loop(tmp_path).write("old/rank-0.pt", 500.0)
    loop = Loop(tmp_path)
    assert loop.after(100) == loop.after(100) == []
    loop.write("new/rank-0.pt", 900.0)
    loop.after(1)
    assert loop.after(30) == [900.0]
    (tmp_path / "new" / "rank-0.pt").unlink()
    loop.after(1)
    assert loop.after(100) == [900.0]


def test_a_folder_that_comes_later_is_seen(tmp_path: Path) -> None:
    loop = Loop(tmp_path / "run")
    assert loop.after(60) == []
    loop.write("rank-0.pt", 70.0)
    loop.after(1)
    assert loop.after(30) == [70.0]


def test_an_api_server_that_was_away_is_updated_later(loop: Loop, capfd: pytest.CaptureFixture[str]) -> None:
    loop.write("rank-0.pt", 70.0)
    loop.after(1)
    loop.server.problem = AnnotationRefusedError("pod vision/run: away")
    assert loop.after(30) == loop.after(10) == []
    assert capfd.readouterr().err.count("vision/run: away") == 1, "said once"
    loop.server.problem = None
    assert loop.after(10) == [70.0]


def test_a_pod_without_a_token_says_so(loop: Loop, capfd: pytest.CaptureFixture[str]) -> None:
    loop.server.token = False
    loop.write("rank-0.pt", 70.0)
    loop.after(1)
    loop.after(30)
    assert "no token" in capfd.readouterr().err


def test_while_the_command_runs_its_checkpoints_are_announced(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from smoke_training.runtime.announcer import Announcer, run\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "loop = 'echo > rank-0.pt; while [ ! -e done ]; do sleep 0.1; done'\n"
        "def say(at):\n"
        "    print(at); (folder / 'done').touch(); return True\n"
        "run(['sh', '-c', f'cd {folder}; {loop}'], Announcer(folder, 0.2, say), poll_s=0.1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.stdout.split() == [str((tmp_path / "rank-0.pt").stat().st_mtime)]


def announced(*words: str) -> list[str]:
    return [sys.executable, "-m", "smoke_training", "announce", *words]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-command"], 127),
        ([str(ROOT / "README.md")], 126),
        ([], 3),
    ],
)
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, command: list[str], code: int) -> None:
    done = subprocess.run(
        announced(str(tmp_path), "--", *command), check=False, capture_output=True, cwd=ROOT
    )
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr


def test_a_pod_that_ends_lets_the_command_write_a_last_checkpoint(tmp_path: Path) -> None:
    script = "trap 'echo last > last; exit 5' TERM; echo > ready; while :; do sleep 0.1; done"
    words = announced(str(tmp_path), "--", "sh", "-c", f"cd {tmp_path}; {script}")
    running = subprocess.Popen(words, cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 5
    assert (tmp_path / "last").read_text() == "last\n"
