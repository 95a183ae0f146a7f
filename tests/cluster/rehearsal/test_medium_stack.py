"""The shipped environment on a real API server with the real Kueue: one life, with programs killed in it."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from policies.rules import CATALOG
from policies.sources import state
from policies.sources.live.records import account
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, choose
from tests.cluster.live.rule_verdicts import Verdicts, verdicts
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, Done
from trainstack.collect.kubernetes import collect

# Rules that are undetermined in a cluster for objects that its state describes.
UNDETERMINED = {
    "MLS-GPU-10": "whether EKS starts nodes by itself, the account knows",
    "MLS-REP-04": "when and how a validation ended, the engine knows",
    "MLS-TRK-03": "which buckets there are, the account knows",
}
pytestmark = [pytest.mark.timeout(1200), pytest.mark.more]


@dataclass(frozen=True)
class Life:
    """What each command said, and what there was."""

    passed: Done
    """The first `up`, during which the API server was killed."""
    opened: str
    """What `status` said then."""
    refreshed: Done
    managed: Verdicts
    """What rules said of the exported state then."""
    live: Verdicts
    """What they said of the cluster."""
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
    choose(home, ClusterKind.REAL, None, {})
    up = *life.UP, "--config-file", life.beside_others(home)
    passed = _killing(home, ("kube-apiserver",), lambda: _validates(home), lambda: life.native(home, *up))
    opened = life.do(home, "status").stdout
    refreshed = life.do(home, "refresh", "--yes")
    managed, live = _judged(home)
    audit = next((home / "control-plane").glob("*/audit.log")).read_text()
    before = Rehearsal(home).status()["resources"]["kubernetes"]
    begun = lambda: Rehearsal(home).status()["resources"]["kubernetes"] < before - 20  # noqa: E731
    cut = _killing(home, ("-m", "rehearsal.daemon"), begun, lambda: life.do(home, "destroy", "--yes"))
    after_cut = _left(home, 30)
    destroyed = life.do(home, "destroy", "--yes")
    Rehearsal(home).wait_until_idle()
    resources, left = Rehearsal(home).status()["resources"], life.processes(home)
    return Life(passed, opened, refreshed, managed, live, audit, cut, after_cut, destroyed, resources, left)


def test_an_up_survives_a_killed_api_server(lived: Life) -> None:
    assert lived.passed.returncode == 0, lived.passed.stdout + lived.passed.stderr
    # What the server's new start takes from the ranks may leave their speed undecided.
    assert re.search(r"^gate +open", lived.opened, re.MULTILINE), lived.opened


def test_what_the_server_fills_in_is_no_change(lived: Life) -> None:
    assert lived.refreshed.returncode == 0, lived.refreshed.stdout + lived.refreshed.stderr
    assert "unchanged" in lived.refreshed.stdout
    assert not re.search(r"\d+ (created|updated|replaced|deleted)", lived.refreshed.stdout)


def test_the_cluster_is_judged_as_its_state(lived: Life) -> None:
    managed = {key for key in lived.managed if key[1] and key[1][0] != "kubernetes:helm.sh/v3:Release"}
    assert len(managed) > 100
    different = {key for key in managed if results(lived.live, key) != results(lived.managed, key)}
    assert {rule for rule, _ in different} == UNDETERMINED.keys()
    assert all(results(lived.live, key) == {"undetermined"} for key in different)
    # Beside that there are what charts and Kubernetes itself brought.
    broken = {key for key in lived.live.keys() - lived.managed.keys() if "fail" in results(lived.live, key)}
    assert broken == {("MLS-K8S-03", ("kubernetes:core/v1:Namespace", None, "default"))}


def results(found_verdicts: Verdicts, key: tuple[str, Any]) -> set[str]:
    return {result for result, _, _ in found_verdicts.get(key, ())}


def test_kueue_admits_the_validation(lived: Life) -> None:
    assert re.search(r'workloads/job-smoke-\w+-\w+/status\?[^"]*', lived.audit)


def test_a_killed_daemon_leaves_no_process_and_destroy_goes_on(lived: Life) -> None:
    assert lived.cut.returncode == 1, lived.cut.stdout + lived.cut.stderr
    assert "Traceback" not in lived.cut.stdout + lived.cut.stderr
    assert lived.after_cut == []
    assert lived.destroyed.returncode == 0, lived.destroyed.stdout + lived.destroyed.stderr
    assert (lived.resources, lived.processes) == (NOTHING, [])


def _judged(home: Path) -> tuple[Verdicts, Verdicts]:
    """Verdicts of rules about the state and about its cluster."""
    export, rules = home.parent / "live.json", CATALOG.rules.values()
    assert life.native(home, "stack", "export", "--stack", life.STACK, "--file", str(export)).returncode == 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(next((home / "control-plane").glob("*/admin.kubeconfig"))))
        found = account(collect())
    assert not found.coverage.refused
    return verdicts(rules, state.read(export)), verdicts(rules, found.resources, found.coverage)


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


def _killing(
    home: Path, program: tuple[str, ...], due: Callable[[], bool], command: Callable[[], Done]
) -> Done:
    """A command during which a program of the home is killed as soon as that is due."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(command)
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
