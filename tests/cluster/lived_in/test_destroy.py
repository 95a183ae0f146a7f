"""The end of a stack that three teams use, by plain Pulumi and by the command."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from tests.cluster.lived_in.stack import STACK, LivedIn, lived_in
from tests.cluster.lived_in.users import APPLIED, IGNORES_SIGTERM, RESEARCH, TEAMS, VISION, Users
from tests.cluster.waiting import eventually
from tests.rehearsal.runs import life

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]
GPU = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
LIMIT_S = 300
"""The time in which a destroy has to end."""
UNKNOWN_S = 180
"""What it gives, and says that it gives, controllers that the stack does not know."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LivedIn]:
    with lived_in(tmp_path) as made:
        yield made


def _settle(lived: LivedIn, file: Path, old: int) -> Users:
    """All that users have: running, waiting, inactive and finished jobs, a notebook, and what they forgot."""
    users = Users(lived.api)
    users.job(RESEARCH, "train", pods=2, requests={**GPU, "nvidia.com/gpu": "8"}, queue="a100", claim="home")
    users.checkpointing(RESEARCH, "saves", str(file))
    users.job(VISION, "sweep", priority="sweep")
    users.job(VISION, "waits", requests=GPU, pods=12)
    users.job_set(APPLIED, "gang")
    users.notebook(APPLIED, "notebook", claim="home")
    for team in TEAMS:
        users.finished(team, old)
    running = [
        (RESEARCH, "train"), (RESEARCH, "saves"), (VISION, "sweep"), (APPLIED, "gang"), (APPLIED, "notebook"),
    ]  # fmt: skip
    ended = [(team, f"old-{index}") for team in TEAMS for index in range(old)]
    users.reach({
        **dict.fromkeys(running, "running"), (VISION, "waits"): "waiting", **dict.fromkeys(ended, "finished"),
    })  # fmt: skip
    return users


def test_plain_pulumi_destroy_ends_with_jobs_running(own: LivedIn, tmp_path: Path) -> None:
    _settle(own, tmp_path / "saved", old=20)
    began = time.monotonic()
    own.stack.destroy()
    assert time.monotonic() - began < LIMIT_S
    assert (tmp_path / "saved").read_text() == "saved"
    assert own.rehearsal.status()["resources"] == life.NOTHING


def test_a_killed_destroy_is_continued_by_the_next(own: LivedIn, tmp_path: Path) -> None:
    users = _settle(own, tmp_path / "saved", old=20)
    users.job(VISION, "stubborn", grace_s=20, notes={IGNORES_SIGTERM: "20s"})
    for team in TEAMS:
        users.forgotten(team)
    users.reach({(VISION, "stubborn"): "running"})
    home = own.rehearsal.home
    command = [str(life.ROOT / ".venv/bin/trainstack"), "destroy", "-s", STACK, "--rehearse", "--yes"]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(command, env=life.environment(home), cwd=life.ROOT, **quiet) as process:
        eventually(lambda: (tmp_path / "saved").read_text() == "saved", "the drain has begun")
        os.killpg(process.pid, signal.SIGKILL)
    began = time.monotonic()
    done = life.do(home, "destroy", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < LIMIT_S + UNKNOWN_S
    # It names what it stops.
    assert f"{VISION}/waits" in done.stdout and f"{VISION}/stubborn" in done.stdout
    assert Rehearsal(home).status()["resources"] == life.NOTHING


def test_destroy_now_waits_for_no_grace_period(own: LivedIn, tmp_path: Path) -> None:
    users = _settle(own, tmp_path / "saved", old=0)
    users.job(VISION, "stubborn", grace_s=3600, notes={IGNORES_SIGTERM: "3600s"})
    users.reach({(VISION, "stubborn"): "running"})
    began = time.monotonic()
    done = life.do(own.rehearsal.home, "destroy", "--yes", "--now")
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < LIMIT_S
    assert own.rehearsal.status()["resources"] == life.NOTHING
