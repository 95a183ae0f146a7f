"""The shipped environment on a real API server with the real Kueue: one life, with programs killed in it."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from rehearsal.client import Rehearsal
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import Done

NOTHING = {"aws": 0, "gcp": 0, "kubernetes": 0}
pytestmark = [pytest.mark.alone, pytest.mark.timeout(1200)]


@dataclass(frozen=True)
class Life:
    """What each command said, and what there was."""

    passed: Done
    """The first `up`, during which the API server was killed."""
    refreshed: Done
    audit: str
    """Every request to the API server until then."""
    cut: Done
    """A `destroy` during which the daemon was killed."""
    after_cut: list[str]
    """What did not end then."""
    destroyed: Done
    resources: Mapping[str, int]
    processes: list[str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from life.home(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def lived(home: Path) -> Life:
    passed = _killing(home, ("kube-apiserver",), lambda: _validates(home), "up", "--yes", "--cluster", "real")
    if passed.returncode and "did not pass: INCONCLUSIVE" in passed.stdout + passed.stderr:
        # It survived; what the server's new start took from the ranks, two processors cannot give twice.
        passed = life.do(home, "up", "--yes", "--cluster", "real")
    refreshed = life.do(home, "refresh", "--yes")
    audit = (home / "control-plane" / "audit.log").read_text()
    before = Rehearsal(home).status()["resources"]["kubernetes"]
    begun = lambda: Rehearsal(home).status()["resources"]["kubernetes"] < before - 20  # noqa: E731
    cut = _killing(home, ("-m", "rehearsal.daemon"), begun, "destroy", "--yes")
    after_cut = _left(home, 30)
    destroyed = life.do(home, "destroy", "--yes")
    Rehearsal(home).wait_until_idle()
    resources, left = Rehearsal(home).status()["resources"], life.processes(home)
    return Life(passed, refreshed, audit, cut, after_cut, destroyed, resources, left)


def test_an_up_survives_a_killed_api_server(lived: Life) -> None:
    assert lived.passed.returncode == 0, lived.passed.stdout + lived.passed.stderr
    assert "PASS" in lived.passed.stdout


def test_what_the_server_fills_in_is_no_change(lived: Life) -> None:
    assert lived.refreshed.returncode == 0, lived.refreshed.stdout + lived.refreshed.stderr
    assert "unchanged" in lived.refreshed.stdout
    assert not re.search(r"\d+ (created|updated|replaced|deleted)", lived.refreshed.stdout)


def test_kueue_admits_the_validation(lived: Life) -> None:
    assert re.search(r'workloads/job-smoke-\w+-\w+/status\?[^"]*', lived.audit)


def test_a_killed_daemon_leaves_no_process_and_destroy_goes_on(lived: Life) -> None:
    assert lived.cut.returncode == 1, lived.cut.stdout + lived.cut.stderr
    assert "Traceback" not in lived.cut.stdout + lived.cut.stderr
    assert lived.after_cut == []
    assert lived.destroyed.returncode == 0, lived.destroyed.stdout + lived.destroyed.stderr
    assert (lived.resources, lived.processes) == (NOTHING, [])


def _validates(home: Path) -> bool:
    """Whether the ranks of the validation run."""
    rows = Rehearsal(home).status()["workloads"]
    return any(row["namespace"] == "trainstack-smoke" and row["phase"] == "Running" for row in rows)


def _left(home: Path, patience_s: float) -> list[str]:
    """What still runs after a while."""
    ends = time.monotonic() + patience_s
    while (found := life.processes(home)) and time.monotonic() < ends:
        time.sleep(0.5)
    return found


def _killing(home: Path, program: tuple[str, ...], due: Callable[[], bool], *command: str) -> Done:
    """A command during which a program of the home is killed as soon as that is due."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(life.do, home, *command)
        while not due():
            assert not running.done(), f"too early: {running.result().stdout}"
            time.sleep(0.2)
        os.kill(_process(home, program), signal.SIGKILL)
        return running.result()


def _process(home: Path, program: tuple[str, ...]) -> int:
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(home) in " ".join(words) and all(any(word.endswith(p) for word in words) for p in program):
            return int(process.pid)
    raise AssertionError(f"{program} does not run")
