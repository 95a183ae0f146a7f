"""Run phases of the test suite; run failed tests once more at the end, alone.

A test that then passes is FLAKY: it is named in the closing lines and appended to a report. Up to `ALLOWED`
flaky tests do not fail the run, except those marked `race`: they guard the product against races, so each
failure counts. Run as `python tools/run_tests.py unit alone`.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = Path(os.environ.get("TRAINSTACK_FLAKY_REPORT", ROOT / ".trainstack" / "flaky.jsonl"))
ALLOWED = 3
# More failures than this are a defect, not chance: running them again would only take time.
MOST_RUN_AGAIN = 20
# Four workers on two processors, because tests wait for servers to start; two of them have all tests of
# control planes, which mostly wait (tests/workers.py). The order of files is that of tests/conftest.py.
WORKERS = ("--processes", "4")
# With so many processes, a program in Go that uses one processor costs a fifth less than one that looks for
# work on all; so does one that collects garbage a quarter as often. Small models on one thread cost a third.
FRUGAL = {"OMP_NUM_THREADS": "1", "GOMAXPROCS": "1", "GOGC": "400"}
# Where tests marked `alone` are: collecting the whole tree takes longer than some of them.
ALONE = (
    *("cluster/lived_in", "faults", "rehearsal/kubernetes", "rehearsal/runs"),
    *("smoke_training/probes", "smoke_training/runs"),
)
# Tests of `make check`: pure modules and generated documents; no servers and no engine.
FAST = (
    "infra/catalog",
    "infra/stackspec",
    "plugin/test_schema.py",
    "policies/rules",
    "policies/test_documentation.py",
    "smoke_training/judges",
    "infra/launchers",
    "trainstack/advice",
    "trainstack/collect/test_documentation.py",
    "trainstack/queues",
    "test_cloud_dispatch.py",
    "test_structure.py",
)
PHASES: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "fast": (
        ("-q", "--processes", "2", "-m", "not alone and not more", *(f"tests/{path}" for path in FAST)),
        FRUGAL,
    ),
    "unit": ((*WORKERS, "-m", "not alone and not more"), FRUGAL),
    "alone": (("-m", "alone and not more", *(f"tests/{folder}" for folder in ALONE)), {}),
    "more": ((*WORKERS, "-m", "more and not alone"), FRUGAL),
    "more-alone": (("-m", "more and alone", *(f"tests/{folder}" for folder in ALONE)), {}),
}
# Exit codes of pytest: all passed, some failed.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Result:
    """One run of pytest: the passed tests, and the failed ones with the reason and the marker `race`."""

    complete: bool
    """All selected tests ran: at least one, and no file failed to import."""
    passed: frozenset[str]
    failed: Mapping[str, Mapping[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the phases in order, then the failed tests alone. The exit code is 0 or 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phases", nargs="+", choices=sorted(PHASES))
    parser.add_argument("--report", type=Path, default=REPORT, help="flaky tests are appended to this file")
    options = parser.parse_args(arguments)
    results = [run(*PHASES[name]) for name in options.phases]
    failed = {name: seen for result in results for name, seen in result.failed.items()}
    flaky = run_again(failed) if all(result.complete for result in results) else []
    append(options.report, flaky, failed)
    return close(results, failed, flaky)


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> Result:
    """Run pytest once. Output goes to the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "outcomes.jsonl")
        plugins = ("-p", "tests.outcomes", "-p", "tests.workers")
        own = (f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", f"--outcomes={log}")
        command = [sys.executable, "-m", "pytest", *plugins, *own, *arguments]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    seen = [json.loads(line) for line in lines]
    passed = frozenset(one["test"] for one in seen if one["outcome"] == "passed")
    failed = {one["test"]: one for one in seen if one["outcome"] == "failed"}
    broken = any(one["outcome"] == "broken" for one in seen)
    return Result(code in (PASSED, FAILED) and not broken and bool(passed or failed), passed, failed)


def run_again(failed: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The failed tests that pass when they run alone, in a process of their own."""
    if not 0 < len(failed) <= MOST_RUN_AGAIN:
        return []
    print(f"\nRunning {len(failed)} failed test(s) once more, alone", flush=True)  # noqa: T201
    again = run([*failed], {})
    return [name for name in failed if again.complete and name in again.passed - again.failed.keys()]


def append(report: Path, flaky: Sequence[str], failed: Mapping[str, Mapping[str, Any]]) -> None:
    """Append one line per flaky test to the report."""
    if not flaky:
        return
    report.parent.mkdir(parents=True, exist_ok=True)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    with report.open("a", encoding="utf-8") as file:
        for name in flaky:
            file.write(json.dumps({"date": day, **failed[name]}) + "\n")


def close(results: Sequence[Result], failed: Mapping[str, Mapping[str, Any]], flaky: Sequence[str]) -> int:
    """Print the closing lines; the exit code."""
    for name in flaky:
        print(f"FLAKY {name} (failed, then passed alone)")  # noqa: T201
    races = [name for name in flaky if failed[name]["race"]]
    for name in races:
        print(f"FAILED {name} (marked `race`: one failure counts)")  # noqa: T201
    forgiven = [name for name in flaky if name not in races] if len(flaky) <= ALLOWED else []
    left = [name for name in failed if name not in forgiven]
    incomplete = sum(not result.complete for result in results)
    if incomplete:
        print("FAILED: tests were not found, or could not be imported")  # noqa: T201
    passed = sum(len(result.passed - result.failed.keys()) for result in results) + len(forgiven)
    print(f"{passed} passed, {len(left)} failed")  # noqa: T201
    return 1 if left or incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
