"""Scripts and start commands, run by a real bash in which only the cluster's own commands are replaced."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.launchers import shell
from infra.launchers.aws import sagemaker
from infra.launchers.gcp import vertex
from infra.launchers.runplan import Mount, RunPlan, RunPlanError
from tests.infra.launchers import plans

# What a node of the run says about itself instead of training: its place and its arguments.
_PRINT_ARGUMENTS = """#!/usr/bin/env python3
import json, os, sys
names = ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "NCCL_DEBUG", "QUOTED")
seen = {name: os.environ.get(name) for name in names}
seen |= {name: value for name, value in os.environ.items() if name.startswith("PET_")}
print(json.dumps({"args": sys.argv[1:], **seen}))
"""
_SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((index = 0; index < SLURM_NNODES; index++)); do SLURM_NODEID=$index "$@"; done
"""
_SCONTROL = '#!/bin/bash\n[[ "$*" == "show hostnames gpu[07-08]" ]] && printf "gpu07\\ngpu08\\n"\n'


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for name, text in {
        "torchrun": _PRINT_ARGUMENTS,
        "python": _PRINT_ARGUMENTS,
        "srun": _SRUN,
        "scontrol": _SCONTROL,
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def launched(command: list[str], tools: Path, **environment: str) -> list[dict[str, Any]]:
    env = {"PATH": f"{tools}:{os.environ['PATH']}", **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(script: str, tools: Path, **environment: str) -> list[dict[str, Any]]:
    path = tools / "script"
    path.write_text(script)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    return launched(["bash", str(path)], tools, **environment)


ARGUMENTS = ["train.py", "--config", "configs/7b.toml", "--note", "it's a $(HOME) test"]


def test_slurm_starts_one_task_a_node_which_knows_its_place(tools: Path) -> None:
    plan = replace(plans.slurm(), env={"NCCL_DEBUG": "INFO", "QUOTED": 'a b\'c $HOME "d"'})
    nodes = run(shell.sbatch(plan), tools, SLURM_NNODES="2", SLURM_JOB_NODELIST="gpu[07-08]")
    assert [node["NODE_RANK"] for node in nodes] == ["0", "1"]
    for rank, node in enumerate(nodes):
        assert node["args"] == ARGUMENTS
        assert node["MASTER_ADDR"] == node["PET_MASTER_ADDR"] == "gpu07"
        assert (node["PET_NNODES"], node["PET_NPROC_PER_NODE"], node["PET_NODE_RANK"]) == (
            "2",
            "8",
            str(rank),
        )
        assert node["QUOTED"] == 'a b\'c $HOME "d"'


def test_a_slurm_script_has_the_needs_of_a_node_and_the_time_limit() -> None:
    script = shell.sbatch(replace(plans.slurm(), timeout_s=3661, startup_timeout_s=60))
    for option in (
        "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=8", "--cpus-per-task=80", "--mem=900G",
        "--partition=gpu", "--account=ml", "--time=62:01", "--signal=TERM@60", "--exclusive",
    ):  # fmt: skip
        assert f"#SBATCH {option}\n" in script, option
    # srun does not inherit the processors of a task since Slurm 22.05.
    assert "srun --nodes=$SLURM_NNODES --ntasks-per-node=1 --cpus-per-task=80 " in script
    assert "--container-image=/images/train.sqsh" in script
    assert "--container-mounts=/checkpoints:/checkpoints" in script
    assert "--container" not in shell.sbatch(plans.training())


def test_a_list_of_nodes_that_cannot_be_read_ends_the_batch_job(tools: Path) -> None:
    path = tools / "script"
    path.write_text(shell.sbatch(plans.slurm()))
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "other"}
    assert subprocess.run(["bash", str(path)], env=env, capture_output=True, check=False).returncode != 0


def test_by_hand_a_node_needs_its_rank(tools: Path) -> None:
    script = shell.torchrun(plans.training())
    (node,) = run(script, tools, NODE_RANK="1", MASTER_ADDR="10.0.0.1")
    assert (node["PET_NODE_RANK"], node["PET_MASTER_ADDR"], node["args"]) == ("1", "10.0.0.1", ARGUMENTS)
    done = subprocess.run(
        ["bash", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "NODE_RANK: " in done.stderr
    (alone,) = run(shell.torchrun(replace(plans.training(), nodes=1)), tools)
    assert (alone["PET_NODE_RANK"], alone["PET_MASTER_ADDR"]) == ("0", "127.0.0.1")


def test_a_command_per_node_finds_its_place_and_starts_no_torchrun(tools: Path) -> None:
    (node,) = run(shell.torchrun(plans.cpu()), tools, NODE_RANK="3", MASTER_ADDR="10.0.0.1")
    assert (node["NODE_RANK"], node["MASTER_PORT"]) == ("3", "29500")
    assert node["args"][1:] == ["node", "--plan", "/opt/trainstack/plan.json"]
    assert "PET_NNODES" not in node


def container(request: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    algorithm = request["AlgorithmSpecification"]
    return [*algorithm["ContainerEntrypoint"], *algorithm["ContainerArguments"]], request["Environment"]


def test_a_sagemaker_node_reads_its_place_from_the_services_file(tools: Path) -> None:
    words, env = container(sagemaker.training_job(plans.managed()))
    config = tools / "resourceconfig.json"
    config.write_text(json.dumps({"current_host": "algo-2", "hosts": ["algo-2", "algo-1"]}))
    env = {
        **env,
        "TRAINSTACK_START": env["TRAINSTACK_START"].replace(
            "/opt/ml/input/config/resourceconfig.json", str(config)
        ),
    }
    (node,) = launched(words, tools, **env)
    assert (node["PET_NODE_RANK"], node["PET_MASTER_ADDR"]) == ("1", "algo-1")
    assert node["args"] == ARGUMENTS


@pytest.mark.parametrize(
    ("kind", "index", "rank"), [("workerpool0", 0, "0"), ("workerpool1", 0, "1"), ("workerpool1", 1, "2")]
)
def test_a_vertex_node_reads_its_place_from_the_cluster_spec(
    tools: Path, kind: str, index: int, rank: str
) -> None:
    job = vertex.custom_job(replace(plans.vertex(), nodes=3))
    assert [pool["replicaCount"] for pool in job["jobSpec"]["workerPoolSpecs"]] == [1, 2]
    spec = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    cluster = {
        "cluster": {"workerpool0": ["w0-0:2222"], "workerpool1": ["w1-0:2222", "w1-1:2222"]},
        "task": {"type": kind, "index": index},
    }
    env = {row["name"]: row["value"] for row in spec["env"]}
    (node,) = launched([*spec["command"], *spec["args"]], tools, **env, CLUSTER_SPEC=json.dumps(cluster))
    assert (node["PET_NODE_RANK"], node["PET_MASTER_ADDR"], node["PET_NNODES"]) == (rank, "w0-0", "3")


@pytest.mark.parametrize("render", [shell.sbatch, shell.torchrun, sagemaker.training_job, vertex.custom_job])
def test_mounts_that_a_place_does_not_have_are_refused(render: Any) -> None:
    plan: RunPlan = replace(
        plans.managed(), vertex=plans.vertex().vertex, mounts=(Mount(name="c", path="/c", config_map="m"),)
    )
    with pytest.raises(RunPlanError, match=r"mounts\[0\]"):
        render(plan)


@pytest.mark.parametrize("render", [sagemaker.training_job, vertex.custom_job])
def test_a_managed_service_needs_a_machine_type(render: Any) -> None:
    with pytest.raises(RunPlanError) as caught:
        render(replace(plans.cpu(), instance_type=None))
    found = "\n".join(caught.value.problems)
    assert "instance_type: missing" in found and ("sagemaker: missing" in found or "vertex: missing" in found)


def test_torchrun_reads_these_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    run_module = pytest.importorskip("torch.distributed.run")
    given = {
        "NNODES": "2",
        "NODE_RANK": "1",
        "NPROC_PER_NODE": "8",
        "MASTER_ADDR": "h0",
        "MASTER_PORT": "29500",
        "MAX_RESTARTS": "3",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"PET_{name}", value)
    parsed = vars(run_module.parse_args(["train.py"]))
    assert {name: str(parsed[name.lower()]) for name in given} == given
