"""The second run of failed tests, with a small suite whose tests fail as they are asked to."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import run_tests

# A test fails in its first process, and passes in the next one.
SUITE = """
import os
import pathlib
import pytest

def once(name):
    mark = pathlib.Path(__file__).with_name(name)
    seen = mark.exists()
    mark.touch()
    assert seen

def test_passes(): pass
def test_breaks(): assert "BROKEN" == ""
def test_ends_its_process():
    mark = pathlib.Path(__file__).with_name("ended")
    if not mark.exists():
        mark.touch()
        os._exit(3)
def test_skips():
    once("skips") if not pathlib.Path(__file__).with_name("skips").exists() else pytest.skip()
@pytest.mark.race
def test_race(): once("race")
"""
CHANCE = "\ndef test_chance_{0}(): once('chance-{0}')\n"


Runner = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    """Runs a file of tests as the phase `unit`; returns the exit code and the lines of output."""

    repository = run_tests.ROOT
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["race: a race"]\n')
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(repository))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)

    def run(text: str, *arguments: str) -> tuple[int, list[str]]:
        (tmp_path / "test_suite.py").write_text(text)
        arguments = ("-q", "-p", "no:cacheprovider", *arguments, "test_suite.py")
        monkeypatch.setattr(run_tests, "PHASES", {"unit": (arguments, {})})
        code = run_tests.main(["unit", "--report", str(tmp_path / "flaky.jsonl")])
        return code, capfd.readouterr().out.splitlines()

    return run


@pytest.mark.parametrize(
    ("chosen", "chances", "expected"),
    [
        (["passes"], 0, (0, 0)),
        (["breaks"], 0, (1, 0)),
        (["passes", "chance"], 3, (0, 3)),
        (["chance"], 4, (1, 4)),
        (["race"], 0, (1, 1)),
        (["chance", "breaks"], 1, (1, 1)),
        (["skips"], 0, (1, 0)),
        (["nothing_has_this_name"], 0, (1, 0)),
    ],
)
def test_a_test_that_fails_by_chance_is_reported_and_up_to_three_are_forgiven(
    tmp_path: Path, runner: Runner, chosen: list[str], chances: int, expected: tuple[int, int]
) -> None:
    suite = SUITE + "".join(CHANCE.format(number) for number in range(chances))
    code, lines = runner(suite, "-k", " or ".join(chosen))
    flaky = sum(line.startswith("FLAKY ") for line in lines)
    assert (code, flaky) == expected
    report = tmp_path / "flaky.jsonl"
    written = [json.loads(line) for line in report.read_text().splitlines()] if flaky else []
    assert len(written) == flaky
    assert all({"date", "test", "race", "reason"} <= line.keys() for line in written)


@pytest.mark.parametrize("workers", [(), ("--processes", "1")], ids=["one process", "forked"])
def test_a_file_that_cannot_be_collected_fails_the_run(runner: Runner, workers: tuple[str, ...]) -> None:
    assert runner("import a_module_that_does_not_exist\n", *workers)[0] == 1


def test_a_test_that_ends_its_worker_is_not_forgiven(runner: Runner) -> None:
    code, lines = runner(SUITE, "-k", "process or passes", "--processes", "1")
    assert code == 1
    assert any(line.startswith("FLAKY ") and line.split()[1].endswith("process") for line in lines)
