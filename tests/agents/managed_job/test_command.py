"""Command line of the script on one node."""

import sys
from pathlib import Path

from agents.managed_job import command
from agents.managed_job.aws.folders import below
from agents.managed_job.job_node import ALONE, JobNode
from agents.managed_job.settings import JobSettings

TWO = JobNode(hosts=("127.0.0.1", "algo-2"), index=1, interface="no-such-interface")


def test_one_process_is_python_itself() -> None:
    result = JobSettings(script="train.py", arguments=("--lr", "1"), gpus=1)
    assert command.command(result, ALONE) == [sys.executable, "-u", "train.py", "--lr", "1"]


def test_several_gpus_or_nodes_meet_at_the_first_host() -> None:
    line = command.command(JobSettings(script="train.py", gpus=4), TWO)
    assert line[2:] == [
        "-m", "torch.distributed.run", "--nnodes=2", "--node-rank=1", "--nproc-per-node=4",
        "--master-addr=127.0.0.1", "--master-port=29500", "--max-restarts=0", "train.py",
    ]  # fmt: skip
    assert "--nproc-per-node=2" in command.command(JobSettings(script="train.py", gpus=2), ALONE)


def test_nodes_of_one_machine_use_the_loopback_and_what_was_set_stays() -> None:
    folders = below(Path("/opt/ml"))
    found = command.environment(
        {"PYTHONPATH": "/mine"}, TWO, folders, (Path("/code.zip"), Path("/folder")), {}
    )
    assert found["GLOO_SOCKET_IFNAME"] == "lo" and found["PYTHONPATH"] == "/code.zip:/folder:/mine"
    assert found["TRAINSTACK_CHECKPOINTS"] == "/opt/ml/checkpoints"
    own = {"NCCL_SOCKET_IFNAME": "ib0"}
    assert command.environment(own, TWO, folders, (Path("/x"),), {})["NCCL_SOCKET_IFNAME"] == "ib0"
    assert "GLOO_SOCKET_IFNAME" not in command.environment({}, ALONE, folders, (Path("/x"),), {})
