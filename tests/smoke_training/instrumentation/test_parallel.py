"""Loops of several ranks, under the real torchrun."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smoke_training.instrumentation.hang import reading, trace_of
from smoke_training.instrumentation.marks import StepTimes
from tests.smoke_training.instrumentation.parallel import PAUSE

HERE = Path(__file__).resolve()
Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The records of the ranks."""
    folder = tmp_path_factory.mktemp("parallel")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(HERE.with_name("parallel.py")), str(folder)],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[3]), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    lines = (folder / "hang.jsonl").read_text().splitlines()
    ranks: Found = [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]
    return [{**rank, "lines": [json.loads(line) for line in lines]} for rank in ranks]


@pytest.mark.parametrize("part", ["sharded", "tensor", "pipeline"])
def test_what_a_rank_waits_for_its_peers_is_communication(found: Found, part: str) -> None:
    medians = [StepTimes(*rank[part]["medians"]) for rank in found]
    assert found[0][part]["exposed_communication_reason"] is None
    assert medians[0].exposed >= PAUSE * 0.8  # the fast rank waits for the slow one
    assert medians[1].compute >= PAUSE
    assert medians[1].exposed < medians[0].exposed
    assert not any(rank[part]["problems"] for rank in found)


def test_tokens_of_all_ranks_are_added_up(found: Found) -> None:
    record = found[0]["sharded"]
    assert record["straggler_reason"] is None
    assert record["tokens_per_second"] == pytest.approx(4 / record["seconds"]["total"])
    assert record["tokens_per_second_all"] > 1.5 * record["tokens_per_second"]


@pytest.mark.parametrize(("loop", "first"), [("poisoned", [4, 3]), ("placed", [None, 3])])
def test_the_rank_with_the_first_loss_that_is_not_finite_is_named(
    found: Found, loop: str, first: list[int | None]
) -> None:
    assert [rank[loop]["nonfinite_loss_step"] for rank in found] == first
    (text,) = found[0][loop]["problems"]
    assert "rank 1 " in text and "step 3" in text
    assert found[0]["sharded"]["nonfinite_loss_step"] is None


def test_the_collective_that_a_rank_did_not_enter_is_named(found: Found) -> None:
    (text, *_) = found[0]["hang"]["problems"]
    assert "rank 1 did not enter all_reduce 512" in text
    assert "rank 0 waits" in text
    hung = [line for line in found[0]["lines"] if "hang" in line]
    assert hung[0]["no_step_for_s"] == 0.8


def entry(
    number: int, *, name: str = "nccl:all_reduce", group: str = "default_pg", **more: Any
) -> dict[str, Any]:
    return {
        "process_group": ["0", group], "collective_seq_id": number, "profiling_name": name,
        "input_sizes": [[512]], "state": "started", "retired": False, "is_p2p": False, **more,
    }  # fmt: skip


def test_readings_of_four_ranks() -> None:
    ahead, behind = trace_of([entry(6, retired=True), entry(7)]), trace_of([entry(6, retired=True)])
    assert reading({0: ahead, 1: ahead, 2: ahead, 3: behind}, 4) == [
        "rank 3 did not enter all_reduce 512 (number 7 of group 0 default_pg); ranks 0-2 wait"
    ]
    assert "ranks 1, 3 did not answer" in reading({0: ahead, 1: None, 2: ahead}, 4)[0]
    other = trace_of([entry(7, name="nccl:broadcast")])
    assert "rank 1 broadcast 512" in reading({0: ahead, 1: other}, 2)[0]
    assert reading({0: ahead, 1: {}}, 2)[0].startswith("rank 1 did not enter")
    assert "py-spy" in reading({0: behind, 1: behind}, 2)[0]
    sends = trace_of([entry(0, is_p2p=True, p2p_seq_id=3, name="nccl:send 0->1")])
    assert reading({0: sends, 1: {}}, 2) == ["rank 0 waits in send 0->1 512"]
