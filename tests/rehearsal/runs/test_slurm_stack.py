"""A large stack on AWS PCS or Cluster Director, from `up` to `destroy`; a real Slurm runs its gate."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.engine.golang import SetupError
from rehearsal.client import Rehearsal
from rehearsal.slurm import packages
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, Done, Seen, do, seen

# The pool that the gate validates, by stack.
POOLS = {"large-slurm-aws": "p4d", "large-slurm-gcp": "h100"}
pytestmark = [pytest.mark.alone, pytest.mark.more, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Life:
    """One life of a stack."""

    pool: str
    made: Seen
    result: Mapping[str, Any]
    status: Done
    unchanged: Seen
    audited: Done
    drifted: Done
    destroyed: Seen


@pytest.fixture(scope="module", params=POOLS)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    try:
        packages.root()
    except SetupError as error:
        pytest.skip(str(error))
    for home in life.home(tmp_path_factory.mktemp("slurm")):
        yield _live(home, request.param)


def _live(home: Path, stack: str) -> Life:
    made, _ = life.decided(home, stack=stack)
    assert made.done.returncode == 0, made.output
    result = json.loads(max(made.results).read_text())
    status = do(home, "status", stack=stack)
    unchanged = seen(home, do(home, "up", "--yes", stack=stack))
    audited = do(home, "audit", "--format", "json", stack=stack)
    drifted = do(home, "drift", "--format", "json", stack=stack)
    ended = do(home, "destroy", "--yes", stack=stack)
    Rehearsal(home).wait_until_idle()
    return Life(POOLS[stack], made, result, status, unchanged, audited, drifted, seen(home, ended))


def test_the_gate_ran_on_nodes_of_the_validated_partition(lived: Life) -> None:
    assert lived.result["verdict"] == "PASS"
    assert {rank["host"].rpartition("-")[0] for rank in lived.result["cluster"]["ranks"]} == {lived.pool}


def test_status_shows_the_nodes_that_run(lived: Life) -> None:
    assert lived.status.returncode == 0, lived.status.stderr
    assert f"{lived.pool}-1: ready" in lived.status.stdout


def test_an_unchanged_up_changes_nothing_and_trains_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.results == lived.made.results
    assert lived.unchanged.resources == lived.made.resources


def test_no_rule_is_broken_and_nothing_has_drifted(lived: Life) -> None:
    outcomes = json.loads(lived.audited.stdout)["outcomes"]
    assert {one["result"] for one in outcomes} == {"pass", "not-applicable"}
    assert lived.drifted.returncode == 0, lived.drifted.stdout


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    assert lived.destroyed.resources == NOTHING
    assert lived.destroyed.processes == []
