import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smoke_training import evidence
from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Decomposition, Numerics, Sharded, Training
from smoke_training.judges.training import decomposition, fitness, numerics, repeatable
from smoke_training.judges.training import step as judged
from smoke_training.model import Cause, Check, Verdict
from smoke_training.probes.training import sharded, step
from tests.smoke_training.samples import lines, plan
from tests.smoke_training.two_ranks import FLIP_PARAMETER, NAN_PARAMETER, NAN_PASS, ODD_PASS, VICTIM

pytestmark = pytest.mark.alone

REPOSITORY = Path(__file__).resolve().parents[4]
DRIVER = REPOSITORY / "tests" / "smoke_training" / "two_ranks.py"
Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """What two ranks measured, by part; every rank must have come to the same evidence."""
    folder = tmp_path_factory.mktemp("group")
    root = REPOSITORY
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(DRIVER), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=240, check=False, cwd=root,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: Lines = {}
    for line in (folder / "lines-0.jsonl").read_text().splitlines():
        item = json.loads(line)
        found.setdefault(item.pop("part"), []).append(item)
    return found


def evidence_of(measured: Lines, *parts: str) -> Evidence:
    world = next(line for line in lines() if line["kind"] == "world")
    found = evidence.parse(json.dumps(line) for part in parts for line in [world, *measured[part]])
    assert found.unreadable == []
    return found


def check(judge: Any, found: Evidence) -> Check:
    item = judge(plan(), found)
    assert isinstance(item, Check)
    return item


def test_a_healthy_gang_trains_finite_equal_and_decomposed(measured: Lines) -> None:
    found = evidence_of(measured, "healthy")
    for judge in (numerics.finite, numerics.gradients, decomposition.decomposition):
        assert check(judge, found).status is Verdict.PASS
    record, watched = found.of(Decomposition), found.of(Numerics)
    training = found.of(Training)
    assert record is not None
    assert watched is not None
    assert training is not None
    gap = check(decomposition.decomposition, found).measured
    assert gap is not None
    assert 0 < (gap.value or 0) < 0.02  # parts and total are measured separately, so they never agree exactly
    assert [[step > 0 for step in row] for row in record.checkpoint] == [
        [index in (7, 17) for index in range(20)]  # after two steps of warm-up, every tenth
    ] * 2
    pairs = len(training.compute[0])
    assert watched.passes == 2 * (6 + pairs) + 22
    assert len(watched.steps) == 6 + pairs
    assert judged.statuses(plan(), training)[1] is not Verdict.FAIL
    assert check(decomposition.overlap, found).measured is not None


def test_parity_is_watched_too(measured: Lines) -> None:
    found = evidence_of(measured, "parity")
    watched = found.of(Numerics)
    assert watched is not None
    assert (watched.phase, watched.passes, len(watched.steps)) == ("parity", 20, 20)
    assert watched.nonfinite == ()


def test_a_nan_is_found_on_its_rank_in_its_parameter_at_its_step(measured: Lines) -> None:
    found = check(numerics.finite, evidence_of(measured, "broken"))
    assert found.status is Verdict.FAIL
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.id, culprit.cause) == ("rank", str(VICTIM), Cause.NAN)
    assert f"{NAN_PARAMETER} at step {NAN_PASS}" in found.message


def test_a_flipped_bit_after_the_reduction_is_found_with_its_parameter(measured: Lines) -> None:
    found = check(numerics.gradients, evidence_of(measured, "broken"))
    assert found.status is Verdict.FAIL
    assert found.culprits[0].cause is Cause.CORRUPTION
    assert found.measured is not None
    assert found.measured.value == 1.0
    assert found.measured.detail["differing"] == [FLIP_PARAMETER]


def test_a_rank_that_miscounts_where_bits_are_compared_is_named(measured: Lines) -> None:
    found = check(repeatable.repeatable, evidence_of(measured, "repeated"))
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.id, culprit.cause) == ("rank", str(VICTIM), Cause.CORRUPTION)
    assert f"1 of {step.REPEATS * step.BATCHES} backward passes" in found.message
    assert f"first at step {ODD_PASS}" in found.message


def test_sharded_parameters_are_sharded_and_train_alike(measured: Lines) -> None:
    found = evidence_of(measured, "sharded")
    record = found.of(Sharded)
    assert record is not None
    assert check(numerics.sharded, found).status is Verdict.PASS
    assert sum(record.shard_bytes) >= record.parameter_bytes
    assert max(record.shard_bytes) < 0.6 * record.parameter_bytes
    assert [len(row) for row in record.step] == [sharded.MOST, sharded.MOST]


def test_on_a_slow_network_fewer_sharded_steps_are_timed(measured: Lines) -> None:
    record = evidence_of(measured, "sharded slowly").of(Sharded)
    assert record is not None
    assert [len(row) for row in record.step] == [len(row) for row in record.plain] == [sharded.LEAST] * 2


def test_every_rank_spins(measured: Lines) -> None:
    (line,) = measured["fitness"]
    assert [len(row) for row in line["spin"]] == [50, 50]
    assert all(0.0005 < min(row) < 0.1 for row in line["spin"])
    assert check(fitness.fitness, evidence_of(measured, "fitness")).status in (
        Verdict.PASS,
        Verdict.INCONCLUSIVE,
    )


def test_a_users_own_loop_learns_which_rank_is_slow_and_where_the_time_goes(measured: Lines) -> None:
    ((line),) = measured["instrument"]
    latest = line["latest"]
    assert line["problems"] == []
    assert latest["straggler"]["rank"] == VICTIM
    assert latest["straggler"]["slowdown"] > 1.5
    assert latest["straggler"]["ci95"][0] > 1.2
    mine, victims = (row["seconds"] for row in latest["ranks"])
    assert victims["data"] > 0.008 > mine["data"]
    assert mine["exposed_communication"] > 0.02  # rank 0 waits for what rank 1 has not got ready
    assert mine["exposed_communication"] > 2 * victims["exposed_communication"]
