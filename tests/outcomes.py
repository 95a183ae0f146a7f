"""A pytest plugin that writes the outcome of each test to a file, for tools/run_tests.py."""

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, help="append one JSON line per test to this file")


class Outcomes:
    """Collects reports in the process that gets all of them; forked workers send theirs there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._failed:
            self._failed.add(report.nodeid)
            self._write(report, "failed", str(report.longrepr)[-2000:])
        elif report.when == "call" and report.passed:
            self._write(report, "passed", "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported: the run is not complete."""
        if report.failed:
            self._write(report, "broken", str(report.longrepr)[-2000:])

    def _write(self, report: pytest.TestReport | pytest.CollectReport, outcome: str, reason: str) -> None:
        # A test that ended its worker has no keywords, so it counts as a race.
        race = "race" in getattr(report, "keywords", ()) or report.when == "???"
        line = {"test": report.nodeid, "outcome": outcome, "race": race, "reason": reason}
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    file: Path | None = config.getoption("--outcomes")
    if file is not None:
        config.pluginmanager.register(Outcomes(file), "outcomes")
