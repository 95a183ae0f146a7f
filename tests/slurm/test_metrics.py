"""Figures of a real Slurm as its login node publishes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from agents.slurm import metrics
from rehearsal.slurm.cluster import LocalSlurm


def test_the_program_publishes_the_figures_of_the_system(slurm: LocalSlurm, tmp_path: Path) -> None:
    slurm.output("scontrol", "update", "NodeName=a100-4", "State=DRAIN", "Reason=test")
    options = "-p", "a100", "-A", "research", "--gpus-per-node=8", "--cpus-per-gpu=1", "--time=60"
    job = slurm.output("sbatch", "--parsable", "-o", "/dev/null", *options, "-N1", "--wrap", "sleep 300")
    slurm.until(lambda: slurm.state(job) == "R", what="the job runs")
    (tmp_path / "aws").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$(dirname "$0")/sent"\n')
    (tmp_path / "aws").chmod(0o755)
    try:
        environment = {
            **slurm.environment,
            "PATH": f"{tmp_path}{os.pathsep}{slurm.environment['PATH']}",
            "NAMESPACE": "trainstack/slurm/test",
            "REGION": "eu-central-1",
        }
        # Alone, as on a login node.
        subprocess.run([sys.executable, "-I", metrics.__file__], env=environment, check=True)
    finally:
        slurm.output("scontrol", "update", "NodeName=a100-4", "State=RESUME")
    sent = (tmp_path / "sent").read_text().splitlines()
    assert sent[:2] == ["cloudwatch", "put-metric-data"] and "trainstack/slurm/test" in sent
    found = {one["MetricName"]: one["Value"] for one in json.loads(sent[-1])}
    assert (found["ControllerUp"], found["NodesDown"], found["JobsRunning"]) == (1, 1, 1)
    # Three nodes of a100 and two of l4 run; the job has eight GPUs.
    assert found["GpusUsed"] == 8 and found["GpusIdle"] == found["GpusRunning"] - 8
    assert found["BudgetUsedPercent"] >= 0 and found["LongestWaitMinutes"] == 0
