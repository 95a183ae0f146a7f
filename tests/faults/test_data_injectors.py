"""Faults of payloads, checkpoints and plans do what they say and prove it; no product code runs."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.faults import system
from tests.faults.injector import InjectorError, plugin_path
from tests.faults.lab import Lab
from tests.faults.payload import Corruption, NotANumber, Plugin, WrongGradient
from tests.faults.stand_ins import run_of
from tests.faults.torn import TornCheckpoint
from tests.faults.world import MissingNode, OtherPlan

REASON = system.missing()
pytestmark = [pytest.mark.alone, pytest.mark.more, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


ALL_REDUCE = """
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
buffer = torch.full((1000,), 1 << rank, dtype=torch.int64)
dist.all_reduce(buffer)
assert [int(v) for v in buffer[:2]] == [3, 3], buffer
print("wrong", int((buffer != 3).sum()), int(buffer[333]), flush=True)
dist.barrier()
"""
WRONG = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(3, 2))
sums = []
for _ in range(4):
    model.zero_grad()
    with model.no_sync():
        model(torch.ones(1, 3)).sum().backward()
    sums.append([round(float(p.grad.sum()), 3) for p in model.parameters()])
print(sums, flush=True)
dist.barrier()
"""
BACKWARD = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
model = DistributedDataParallel(torch.nn.Linear(3, 2))
finite = []
for _ in range(4):
    model.zero_grad()
    with model.no_sync():
        model(torch.ones(1, 3)).sum().backward()
    finite.append(all(bool(p.grad.isfinite().all()) for p in model.parameters()))
print(finite, flush=True)
dist.barrier()
"""


def two_ranks(lab: Lab, fault: Plugin, script: str) -> list[str]:
    """Run a two-rank program under a plugin, as the lab starts a node; what each rank printed."""
    fault.install(lab)
    words, ranks = [sys.executable, "-c", script], []
    for node in lab.nodes:
        changes = {key: str(value) for key, value in fault.environment(lab, node.index).items()}
        environment = {
            **lab.environment(node), **changes, "RANK": str(node.index),
            "TORCHELASTIC_RESTART_COUNT": "0", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        ranks.append(subprocess.Popen(node.argv(*words), env=environment, stdout=subprocess.PIPE, text=True))
    return [rank.communicate(timeout=60)[0].strip() for rank in ranks]


@pytest.mark.parametrize(("mask", "value"), [(None, 1), (1 << 40, 3 + (1 << 40))])
def test_a_corrupted_contribution_makes_one_wrong_sum(lab: Lab, mask: int | None, value: int) -> None:
    fault = Corruption(rank=1, mask=mask)
    fault.install(lab)
    with pytest.raises(InjectorError, match="never bit"):
        fault.prove(run_of(lab))
    assert two_ranks(lab, fault, ALL_REDUCE) == [f"wrong 1 {value}"] * 2
    assert "call 1: element 333" in fault.prove(run_of(lab))


def test_a_nan_is_in_one_ranks_own_gradient_from_the_wanted_pass_on(lab: Lab) -> None:
    fault = NotANumber(rank=1, after=3)
    assert two_ranks(lab, fault, BACKWARD) == ["[True, True, True, True]", "[True, True, False, False]"]
    assert "backward 3: module.bias" in fault.prove(run_of(lab))


def test_a_wrong_gradient_is_one_ranks_own_in_every_so_many_passes(lab: Lab) -> None:
    fault = WrongGradient(rank=1, every=3, parameter=1)
    right, wrong = "[6.0, 2.0]", "[6.0, 2.501]"
    found = two_ranks(lab, fault, WRONG)
    assert found == [f"[{', '.join([right] * 4)}]", f"[{right}, {right}, {wrong}, {right}]"]
    assert "backward 3: module.bias" in fault.prove(run_of(lab))


def test_the_plugins_do_nothing_outside_the_rank_they_are_meant_for() -> None:
    fault = '{"kind": "corrupt", "rank": 1, "proof": "/dev/null", "every": 1, "mask": null, "least_bytes": 8}'
    script = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for environment in ({"RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0"}, {"RANK": "1"}, {},
                    {"RANK": "1", "TORCHELASTIC_RESTART_COUNT": "0"}):
    os.environ.update(environment)
    buffer = torch.ones(9, dtype=torch.int64)
    dist.all_reduce(buffer)
    print(int(buffer.sum()), end=" ")
    for name in environment:
        del os.environ[name]
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(plugin_path("rank")), "TSLAB_FAULT": fault},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["9", "9", "9", "8"]


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_the_newest_checkpoint_is_damaged_once_and_only_after_the_kill(lab: Lab, how: str) -> None:
    scratch = lab.nodes[1].work_dir / "node-1"
    files = {}
    for step, nodes in {4: (0, 1), 8: (0, 1), 12: (1,)}.items():  # node 0 died before it had committed 12
        for node in nodes:
            folder = lab.nodes[node].work_dir / f"node-{node}" / "checkpoints" / f"step-{step:08d}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"commit-node-{node}.json").write_text("{}")
        files[step] = folder / "__1_0.distcp"
        files[step].write_bytes(bytes(1000))
        (folder / ".metadata").write_text("{}")
    fault, run = TornCheckpoint(node=1, how=how), run_of(lab)
    try:
        fault.watch(run)
        with pytest.raises(InjectorError, match="killed"):
            fault.prove(run)
        (scratch / "killed.json").write_text("{}")
        fault.watch(run)
        assert "step-00000008/__1_0.distcp (1000 bytes)" in fault.prove(run)
        assert files[4].read_bytes() == files[12].read_bytes() == bytes(1000)
        wanted = bytes(500) if how == "truncated" else bytes(500) + b"\1" + bytes(499)
        assert files[8].read_bytes() == wanted
        fault.watch(run)
        assert files[8].read_bytes() == wanted
    finally:
        (scratch / "killed.json").unlink(missing_ok=True)


def test_other_plans_and_missing_nodes(lab: Lab) -> None:
    document: dict[str, Any] = {"nodes": 2, "seed": 7}
    other, missing = OtherPlan(node=1, changes={"nodes": 3}), MissingNode(node=1)
    assert [other.plan(lab, node, document) for node in (0, 1)] == [document, {"nodes": 3, "seed": 7}]
    assert [missing.plan(lab, node, document) for node in (0, 1)] == [document, None]
    run = run_of(lab)
    assert "node 1" in missing.prove(run)
    with pytest.raises(InjectorError, match="node 1"):
        other.prove(run)
