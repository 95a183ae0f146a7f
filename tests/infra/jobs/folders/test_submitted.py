"""Jobs of the emulated SageMaker: the code that runs is what was submitted; a job that is stopped twice."""

import time
from pathlib import Path

from infra.jobs.packing.pack import pack
from infra.jobs.service import JobLogs, JobState
from infra.jobs.stopping import stopped
from infra.jobs.submission import start
from infra.launchers import bundle, managed
from tests.infra.jobs.conftest import Stack

SAVES = """
import pathlib, signal, sys, time
def save(*_):
    print("saving", flush=True)
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.02)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
while True:
    time.sleep(0.02)
"""


def test_code_that_another_member_puts_in_its_place_does_not_run(stack: Stack, tmp_path: Path) -> None:
    """The folder of code is named by its digest: who knows the code can write there first."""
    made = stack.wrapped("print('mine')")
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_text("print('not mine')")
    for name, content in ((managed.PACK, pack(other).content), (bundle.NAME, bundle.of_jobs().content)):
        stack.service.keep(f"{made.code_uri}{name}", content)
    start(made, stack.service, stack.reported.append)
    job = stack.followed(made.name)
    assert job.state is JobState.FAILED and "not mine" not in stack.reported, stack.text


def test_a_wrapper_that_another_member_puts_in_its_place_does_not_run(stack: Stack) -> None:
    made = stack.wrapped("print('mine')")
    stack.service.keep(f"{made.code_uri}{bundle.NAME}", b"import os")
    start(made, stack.service, stack.reported.append)
    assert stack.followed(made.name).state is JobState.FAILED and "mine" not in stack.reported


def test_a_run_is_stopped_twice_while_it_saves(stack: Stack, tmp_path: Path) -> None:
    made = stack.wrapped(SAVES, arguments=(str(tmp_path / "saved"),))
    start(made, stack.service, stack.reported.append)
    received = waiting_for("begun", stack, made.name)
    states: list[JobState] = []

    def pause(_: float) -> None:
        """Between two looks of the first: the second, once the script saves; then it may end."""
        if not states and any(line.text == "saving" for line in received.read()):
            stack.service.stop(made.name)
            found = stack.service.job(made.name)
            assert found is not None
            states.append(found.state)
            (tmp_path / "saved").touch()
        time.sleep(0.05)

    job = stopped(stack.service, made.name, stack.reported.append, pause, 0.05)
    assert job.state is JobState.STOPPED and states == [JobState.STOPPING]


def waiting_for(word: str, stack: Stack, name: str) -> JobLogs:
    """The log of a run, read up to a line."""
    logs, deadline = stack.service.logs(name), time.monotonic() + 30
    while not any(line.text == word for line in logs.read()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return logs
