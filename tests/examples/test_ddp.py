"""One process, two processes and two machines come to the same numbers."""

import signal
from pathlib import Path

import pytest
import torch

from tests.agents.managed_job.managed import Managed, Node
from tests.examples.conftest import Make, interrupt, losses
from tests.smoke_training.jobs import port_pair

SHORT = ("--epochs", "1", "--lr", "0.03")  # 64 steps
HOSTS = ("127.0.0.1", "127.0.0.2")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / "model" / "model.pt", weights_only=True)["model"]
    return found


def two_machines(job: Managed) -> list[Node]:
    """Two containers with the same checkpoints, as the service gives them to both at the start."""
    job.checkpoints.mkdir(parents=True, exist_ok=True)
    for host in HOSTS:
        job.base(host).mkdir(parents=True)
        (job.base(host) / "checkpoints").symlink_to(job.checkpoints)
    job.environment["TRAINSTACK_MASTER_PORT"] = str(port_pair())
    return [job.start(SHORT, HOSTS, host) for host in HOSTS]


@pytest.mark.more  # the life of small-aws trains on two machines
def test_two_machines_go_on_from_one_process_to_the_same_numbers(template: Make) -> None:
    alone = template("ddp", "train.py", "alone")
    code, straight = alone.run(*SHORT)
    assert code == 0, straight
    curve = losses(straight)
    assert curve[60] < curve[10] / 2

    job = template("ddp", "train.py")
    interrupt(job, 25, signal.SIGTERM)
    assert job.run(*SHORT)[0] == 128 + signal.SIGTERM
    ended = [node.finish() for node in two_machines(job)]
    assert [code for code, _ in ended] == [0, 0], ended
    again = losses(ended[0][1])
    assert "goes on after step 25" in ended[0][1] and max(again) == 60
    assert losses(ended[1][1]) == {}, "one process speaks for all"
    assert all(abs(again[step] - curve[step]) < 1e-4 for step in again)
    found = weights(job.base(HOSTS[0]))
    assert all(torch.allclose(found[name], value, atol=1e-4) for name, value in weights(alone.base()).items())


def test_a_stop_of_one_machine_lets_both_leave_after_the_same_step(template: Make) -> None:
    job = template("ddp", "train.py")
    interrupt(job, 25, signal.SIGTERM, rank=1)
    (code, said), (other, _) = (node.finish() for node in two_machines(job))
    assert code != 0 and other != 0
    assert "stopped after step 25, which is saved" in said
    assert (job.checkpoints / "step-00000025.pt").exists()
    assert job.failure(HOSTS[1]).startswith("node 1: train.py: stopped by SIGTERM")


def test_a_rank_that_fails_is_the_reason(template: Make) -> None:
    job = template("ddp", "train.py", TRAINSTACK_GPUS="2", TRAINSTACK_MASTER_PORT=str(port_pair()))
    path: Path = job.code / "train.py"
    fails = "    if world.rank == 1:\n        raise ValueError('rank 1 has had enough')\n"
    loop = "    for inputs, targets in metrics"
    path.write_text(path.read_text().replace(loop, fails + loop))
    code, said = job.run(*SHORT)
    assert code == 1, said
    assert job.failure().startswith("train.py: exit code 1: ValueError: rank 1 has had enough")
