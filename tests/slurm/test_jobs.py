"""Scripts of `smoke render --for sbatch` on nodes of a real Slurm: the gate and a training run."""

import contextlib
import dataclasses
import json
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.launchers import shell
from infra.launchers.runplan import RunPlan
from rehearsal.core.faults import SmokeFault
from rehearsal.slurm.cluster import LocalSlurm
from rehearsal.workloads.faults import SlowRank
from tests.smoke_training.jobs import bundle, port_pair
from tests.smoke_training.samples import document
from tests.trainstack.cli.command import run

pytestmark = pytest.mark.more

BORROW = ("-A", "research", "-p", "a100", "-q", "borrow")
IMAGE = "registry.example/train@sha256:" + "0a" * 32
PYTHON = Path(sys.executable).parent
DDP = Path(__file__).resolve().parents[2] / "examples" / "ddp"


def submitted(slurm: LocalSlurm, script: Path, *options: str) -> str:
    """The job of a script, in whose environment is the Python of this process."""
    command = 'PATH="$1:$PATH" SMOKE_DEVICE=cpu; export PATH SMOKE_DEVICE; shift; exec sbatch --parsable "$@"'
    return slurm.output("bash", "-c", command, "sbatch", str(PYTHON), *options, str(script))


def ended(slurm: LocalSlurm, job: str, seconds: float = 120.0) -> str:
    """The state of a job at its end."""
    slurm.until(lambda: slurm.state(job) == "", seconds, what=f"end of job {job}")
    found: list[str] = []

    def booked() -> bool:
        rows = slurm.output("sacct", "-nXP", "-j", job, "-o", "state").split()
        found[:] = rows
        return bool(rows) and rows[0] not in ("RUNNING", "COMPLETING", "PENDING")

    slurm.until(booked, what="sacct")
    return found[0]


def gate(slurm: LocalSlurm, folder: Path, nodes: int, **changes: Any) -> tuple[str, dict[str, Any], str]:
    """End state, result and log of a validation that the command line rendered."""
    folder.mkdir(exist_ok=True)
    bundle(folder)
    plan = document(
        nodes=nodes,
        gpus_per_node=0,
        fabric="tcp",
        hourly_cost_usd=None,
        image=IMAGE,
        timeout_s=150,
        **changes,
    )
    (folder / "plan.json").write_text(json.dumps(plan))
    script = folder / "gate.sh"
    run(
        *("smoke", "render", "--for", "sbatch", "--plan", str(folder / "plan.json"), "--code", str(folder)),
        *("--cpu", "4", "--work-root", str(folder), "--out", str(script)),
    )
    script.write_text(script.read_text().replace("29500", str(port_pair())))
    job = submitted(slurm, script, *BORROW, f"--output={folder}/log")
    state = ended(slurm, job, 200)
    log = (folder / "log").read_text()
    result = folder / "validation" / "result.json"
    assert result.is_file(), log[-3000:]
    return state, json.loads(result.read_text()), log


def test_the_gate_passes_on_four_nodes_and_names_them(slurm: LocalSlurm, tmp_path: Path) -> None:
    state, result, log = gate(
        slurm, tmp_path / "gate", 4, phases=["world", "collectives", "parity", "checkpoint"],
        min_scaling_efficiency=0.01,
    )  # fmt: skip
    assert (state, result["verdict"]) == ("COMPLETED", "PASS"), log[-3000:]
    hosts = {one["host"] for one in result["world"]["ranks"]} if "world" in result else set()
    assert hosts <= {f"a100-{number}" for number in range(1, 5)}
    assert "a100-1" in json.dumps(result)


def test_a_slow_rank_is_named_with_its_node(slurm: LocalSlurm, tmp_path: Path) -> None:
    state_of = SimpleNamespace(over=False)
    pids = partial(_started_with, f"SLURM_CONF={slurm.folder}/etc/slurm.conf")
    runner: Any = SimpleNamespace(state=state_of, pids=pids, note=print)
    SlowRank(runner, SmokeFault(slow_rank=1, duty=0.3))
    try:
        state, result, log = gate(
            slurm, tmp_path / "gate", 2, phases=["world", "fitness", "training"], min_scaling_efficiency=0.01
        )
    finally:
        state_of.over = True
    assert (state, result["verdict"]) == ("FAILED", "FAIL"), log[-3000:]
    found = next(one for one in result["checks"] if one["status"] == "FAIL")
    assert "a100-2" in json.dumps(found), found


def _started_with(variable: str) -> list[int]:
    """The processes with a variable in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def training(folder: Path, **changes: Any) -> Path:
    """The script of a run of examples/ddp on two nodes, which writes checkpoints often."""
    folders = "--checkpoints", str(folder / "checkpoints"), "--model", str(folder / "model")
    plan = RunPlan(
        name="ddp",
        image=IMAGE,
        command=("train.py", "--epochs", "16", "--save-every", "20", *folders),
        nodes=2,
        cpu=2,
        memory_gib=8,
        timeout_s=600,
        startup_timeout_s=60,
        grace_s=10,
        master_port=port_pair(),
        env={"OMP_NUM_THREADS": "1"},
    )
    script = folder / "job.sh"
    script.write_text(shell.sbatch(dataclasses.replace(plan, **changes)))
    return script


def steps(folder: Path) -> list[int]:
    """Steps of the checkpoints of a run."""
    return sorted(int(one.stem.removeprefix("step-")) for one in (folder / "checkpoints").glob("step-*.pt"))


def test_a_run_goes_on_from_its_checkpoint_after_a_node_is_lost(slurm: LocalSlurm, tmp_path: Path) -> None:
    log = tmp_path / "log"
    job = submitted(slurm, training(tmp_path), *BORROW, f"--chdir={DDP}", f"--output={log}")
    slurm.until(lambda: bool(steps(tmp_path)), 90, what="a checkpoint")
    victim = slurm.output("squeue", "-h", "-j", job, "-o", "%B")
    others = {one.name for one in slurm.nodes if one.name.startswith("a100")} - {victim}
    slurm.kill_node(victim)
    try:
        slurm.output("scontrol", "update", f"NodeName={victim}", "State=DOWN", "Reason=lost")
        slurm.until(lambda: slurm.state(job) == "R", 60, what="job runs again")
        nodes = set(slurm.output("scontrol", "show", "hostnames", _nodes(slurm, job)).split())
        assert nodes <= others
        assert ended(slurm, job, 150) == "COMPLETED", log.read_text()[-3000:]
        text = log.read_text()
        assert "goes on after step" in text, text[-3000:]
        assert "Restarts=1" in slurm.output("scontrol", "show", "job", job)
    finally:
        slurm.start_node(victim)
        slurm.output("scontrol", "update", f"NodeName={victim}", "State=RESUME")
        slurm.until(lambda: slurm.output("sinfo", "-hN", "-n", victim, "-o", "%t") == "idle", 60, what="idle")


def _nodes(slurm: LocalSlurm, job: str) -> str:
    return slurm.output("squeue", "-h", "-j", job, "-o", "%N")


def test_a_job_within_a_quota_preempts_one_that_borrows(slurm: LocalSlurm) -> None:
    low = slurm.output(
        *("sbatch", "--parsable", *BORROW, "-N4", "--gpus-per-node=8", "--time=30"),
        *("--wrap", "srun sleep 300"),
    )
    slurm.until(lambda: slurm.state(low) == "R", what="low runs")
    high = slurm.output(
        *("sbatch", "--parsable", "-A", "vision", "-p", "a100", "--gpus-per-node=8", "--time=5"),
        *("--wrap", "sleep 1"),
    )
    slurm.until(lambda: slurm.state(high) in ("R", "CG"), 150, what="high runs")
    slurm.until(lambda: slurm.state(low) == "PD", what="low waits")
    assert "PREEMPTED" in slurm.output("sacct", "-nXPD", "-j", low, "-o", "state")


def test_a_reservation_keeps_its_nodes(slurm: LocalSlurm) -> None:
    slurm.output(
        *("scontrol", "create", "ReservationName=block", "StartTime=now+30minutes", "Duration=UNLIMITED"),
        *("Nodes=a100-[1-4]", f"Users={slurm.user}", "Flags=MAINT,IGNORE_JOBS"),
    )
    try:
        short = slurm.output("sbatch", "--parsable", *BORROW, "--gpus=1", "--time=10", "--wrap", "sleep 60")
        long = slurm.output("sbatch", "--parsable", *BORROW, "--gpus=1", "--time=90", "--wrap", "sleep 60")
        slurm.until(lambda: slurm.state(short) == "R", what="short runs")
        slurm.until(
            lambda: "ReqNodeNotAvail" in slurm.output("squeue", "-h", "-j", long, "-o", "%r"),
            what="long waits",
        )
    finally:
        slurm.run("scancel", "--user", slurm.user)
        slurm.output("scontrol", "delete", "ReservationName=block")


def test_steps_have_the_cores_of_the_job(slurm: LocalSlurm, tmp_path: Path) -> None:
    """From 22.05 on srun does not take --cpus-per-task of sbatch."""
    script = training(tmp_path, command=("env",), command_per="node", cpu=12)
    job = submitted(slurm, script, *BORROW, f"--output={tmp_path}/log")
    assert ended(slurm, job) == "COMPLETED"
    assert (tmp_path / "log").read_text().count("SLURM_CPUS_PER_TASK=12") == 2
    names = {line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("NODE_NAME=")}
    assert names == {"NODE_NAME=a100-1", "NODE_NAME=a100-2"}
