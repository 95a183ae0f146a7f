"""An `up` of the shipped environment that is interrupted, or refused before it begins."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from infra.engine import install
from rehearsal.client import Rehearsal
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, ROOT, STACK, Seen, do, seen, trainstack

pytestmark = [pytest.mark.timeout(900), pytest.mark.race]


def test_an_interrupted_up_ends_cleanly_and_the_next_one_continues(tmp_path: Path) -> None:
    for home in life.home(tmp_path):
        stopped = _interrupted(home)
        assert stopped.done.returncode == 130, stopped.output
        assert "up interrupted" in stopped.done.stdout
        assert stopped.resources["aws"] >= 20
        preview = seen(home, do(home, "preview"))
        assert preview.done.returncode == 0, preview.output
        assert "unchanged" in preview.done.stdout, "what was created before the interrupt is in the state"
        assert "created" in preview.done.stdout and "total of known" in preview.done.stdout
        assert preview.resources == stopped.resources
        destroyed = seen(home, do(home, "destroy", "--yes"))
        assert destroyed.done.returncode == 0, destroyed.output
        assert destroyed.resources == NOTHING
        assert destroyed.processes == []


@pytest.mark.more
def test_a_login_that_ends_in_the_middle_is_named_and_the_next_command_continues(tmp_path: Path) -> None:
    stack = "small-aws"
    for home in life.home(tmp_path):
        failed = seen(home, do(home, "up", "--yes", "--fault", "aws:sagemaker/domain:expired", stack=stack))
        assert failed.done.returncode == 1, failed.output
        assert "ExpiredTokenException" in failed.output and failed.output.count("aws sso login") == 1
        assert failed.resources["aws"] >= 20, "what was created before is kept"
        preview = seen(home, do(home, "preview", stack=stack))
        assert preview.done.returncode == 0, preview.output
        assert "unchanged" in preview.done.stdout and "created" in preview.done.stdout
        assert preview.resources == failed.resources
        destroyed = seen(home, do(home, "destroy", "--yes", stack=stack))
        assert destroyed.done.returncode == 0 and destroyed.resources == NOTHING, destroyed.output


def _interrupted(home: Path) -> Seen:
    """An `up` that was interrupted at 20 resources of AWS."""
    command = [str(ROOT / ".venv" / "bin" / "trainstack"), "up", "-s", STACK, "--rehearse", "--yes"]
    running = subprocess.Popen(
        command, env=life.environment(home), stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    rehearsal, deadline = Rehearsal(home), time.monotonic() + 120
    while rehearsal.status()["resources"]["aws"] < 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate(timeout=120)
    return seen(home, subprocess.CompletedProcess(command, running.returncode, printed, ""))


def test_nothing_is_started_for_a_stack_file_that_is_wrong(tmp_path: Path) -> None:
    done = trainstack(tmp_path, "up", "-s", "no-such-stack", "--rehearse", "--yes")
    assert done.returncode == 2
    assert "dev-aws" in done.stderr and "Traceback" not in done.stderr
    done = trainstack(tmp_path, "up", "-s", STACK, "--rehearse", "--yes", "--fault", "smoke:gremlins")
    assert done.returncode == 2 and "smoke:slow-rank" in done.stderr
    done = trainstack(tmp_path, "up", "-s", STACK, "--yes", "--fault", "smoke:slow-rank=1")
    assert done.returncode == 2 and "--rehearse" in done.stderr
    assert install.current() is not None and life.processes(tmp_path) == []
