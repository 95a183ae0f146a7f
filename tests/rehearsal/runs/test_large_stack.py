"""Managers with two clusters, also on two clouds, from `up` to `destroy` of all, in the emulated clouds."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehearsal.client import Rehearsal
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, Done, Seen, do, seen

CLUSTERS = {
    "large-aws": {"usw2": "usw2-h100", "use1": "use1-a100"},
    "large-gcp": {"usc1": "usc1-h100", "use4": "use4-h100-spot"},
    "large-mixed": {"use1": "use1-a100", "usc1": "usc1-h100-spot"},
}
"""Pools for training of the clusters, by manager and cluster."""
LEFT = {
    "large-aws": NOTHING,
    # The access logs of Cloud Storage are a setting of the project, which stays (GcpAccessLog).
    "large-gcp": {**NOTHING, "gcp": 1},
    "large-mixed": {**NOTHING, "gcp": 1},
}
pytestmark = [pytest.mark.alone, pytest.mark.more, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Life:
    """One life of an environment."""

    manager: str
    made: Seen
    pools: frozenset[str]
    """Pools whose validation passed."""
    status: Done
    unchanged: Seen
    audited: Mapping[str, Done]
    drifted: Mapping[str, Done]
    destroyed: Seen


@pytest.fixture(scope="module", params=list(CLUSTERS))
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp("large")):
        yield _live(home, request.param)


def _live(home: Path, manager: str) -> Life:
    stacks = (manager, *(f"{manager}-{one}" for one in CLUSTERS[manager]))
    made, _ = life.decided(home, stack=manager)
    assert made.done.returncode == 0, made.output
    status = do(home, "status", stack=manager)
    unchanged = seen(home, do(home, "up", "--yes", stack=manager))
    audited = {one: do(home, "audit", "--format", "json", stack=one) for one in stacks}
    drifted = {one: do(home, "drift", "--format", "json", stack=one) for one in stacks}
    ended = do(home, "destroy", "--yes", stack=manager)
    Rehearsal(home).wait_until_idle()
    return Life(manager, made, _passed(made.output), status, unchanged, audited, drifted, seen(home, ended))


def _passed(output: str) -> frozenset[str]:
    """Pools with a verdict PASS in the output of `up`."""
    return frozenset(re.findall(r"(\S+): PASS ", output))


def test_a_gate_passed_on_each_cluster_before_the_manager_was_deployed(lived: Life) -> None:
    pools = CLUSTERS[lived.manager]
    assert lived.pools == {*pools.values()}


def test_the_capacity_block_is_presumed_and_named(lived: Life) -> None:
    # A reservation of Google Cloud that a spec names is accepted without.
    assert ("cr-0a1b2c3d4e5f67890" in lived.made.output) == (lived.manager == "large-aws")


def test_the_manager_is_connected_to_all_clusters(lived: Life) -> None:
    assert lived.status.returncode == 0, lived.status.stderr
    assert ", ".join(CLUSTERS[lived.manager]) in lived.status.stdout


def test_an_unchanged_up_changes_nothing_and_trains_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.results == lived.made.results
    assert lived.unchanged.resources == lived.made.resources


def test_no_rule_is_broken_and_nothing_has_drifted(lived: Life) -> None:
    for stack, done in lived.audited.items():
        outcomes = json.loads(done.stdout)["outcomes"]
        assert {one["result"] for one in outcomes} <= {"pass", "not-applicable"}, stack
    for stack, done in lived.drifted.items():
        assert done.returncode == 0, (stack, done.stdout)


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    assert lived.destroyed.resources == LEFT[lived.manager]
    assert lived.destroyed.processes == []
