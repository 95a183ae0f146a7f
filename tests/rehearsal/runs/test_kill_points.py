"""`kill -9` of anything at any point, then `up`: the same graph, no orphan, no double; `destroy`: nothing."""

from pathlib import Path

import pytest

from rehearsal.client import Rehearsal
from tests.rehearsal.runs.kill_points import Kill, Stage, play

pytestmark = pytest.mark.race

# benchmarks/kill_points.py goes through more, with other seeds.
POINTS, SEED = 12, 7


def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path, rehearsal: Rehearsal) -> None:
    stage = Stage(tmp_path, rehearsal)
    stage.prepare()
    assert list(play(stage, POINTS, SEED)) == []
    assert len(stage.kills) == POINTS


def test_the_check_sees_an_orphan(tmp_path: Path, rehearsal: Rehearsal) -> None:
    """Without recovery, a create that is never asked for again stays behind."""
    stage = Stage(tmp_path, rehearsal)
    stage.prepare()
    assert not stage.run("up", Kill("up", "engine", "crash-after", 5))
    assert stage.pending() >= 1
    orphans = set(stage.records()) - set(stage.known())
    assert orphans
    assert stage.run("destroy")
    assert stage.leftovers() == 0 and stage.pending() == 0
