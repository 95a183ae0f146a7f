"""The queue of a real Slurm, with users' jobs that wait for different reasons."""

from collections.abc import Mapping
from typing import Any

import pytest

from infra.errors import UserError
from rehearsal.slurm.cluster import LocalSlurm
from tests.trainstack.cli.command import run, run_json


def _submit(slurm: LocalSlurm, *options: str) -> str:
    """The number of a job that sleeps."""
    return slurm.output(
        *("sbatch", "--parsable", "--output=/dev/null", "--cpus-per-gpu=1", *options, "--wrap", "sleep 300")
    )


def _shown(*more: str) -> Mapping[str, Any]:
    code, found = run_json("slurm", "queue", "-s", "dev-aws", *more)
    assert code == 0
    return dict(found)


@pytest.fixture
def here(slurm: LocalSlurm, monkeypatch: pytest.MonkeyPatch) -> LocalSlurm:
    """The commands of Slurm are on PATH."""
    for key, value in slurm.environment.items():
        monkeypatch.setenv(key, value)
    return slurm


def test_each_waiting_job_has_its_reason_with_the_numbers_behind_it(here: LocalSlurm) -> None:
    of_a100 = "--partition=a100", "--gpus-per-node=8"
    runs = _submit(here, *of_a100, "-A", "research", "-N1", "--time=60", "--job-name=a|b")
    here.until(lambda: here.state(runs) == "R", what="the first job runs")
    quota = _submit(here, *of_a100, "-A", "research", "-N1", "--time=60")
    # An hour of a node is $21.96; the budget is $100.
    within = _submit(here, *of_a100, "-A", "vision", "-N1", "--time=240")
    here.until(lambda: here.state(within) == "R", what="the second job runs")
    budget = _submit(here, *of_a100, "-A", "vision", "-N1", "--qos=borrow", "--time=120")
    wide = _submit(here, *of_a100, "-A", "applied-ml", "-N3", "--qos=borrow", "--time=60")
    behind = _submit(here, *of_a100, "-A", "applied-ml", "-N3", "--qos=borrow", "--time=60")
    held = _submit(here, *of_a100, "-A", "research", "-N1", "--hold")
    after = _submit(here, *of_a100, "-A", "research", "-N1", f"--dependency=afterok:{runs}")

    kinds = {
        quota: "quota",
        budget: "over budget",
        wide: "resources",
        behind: "behind others",
        held: "held",
        after: "dependency",
    }
    found: Mapping[str, Any] = {}

    def looked_at() -> bool:
        # Until its backfill scheduler has run, Slurm names another reason and plans no start.
        nonlocal found
        found = _shown()
        rows = {one["job"].partition(" ")[0]: one for one in found["waiting"]}
        return {name: one["reason"]["kind"] for name, one in rows.items()} == kinds and rows[wide]["estimate"]

    here.until(looked_at, 120, what="all jobs have their reasons")
    running = {one["job"].split(" ", 1)[0]: one for one in found["running"]}
    assert running[runs]["job"] == f"{runs} a|b"
    assert {name: (one["team"], one["gpus"]) for name, one in running.items()} == {
        runs: ("Research", 8),
        within: ("Vision", 8),
    }
    waiting = {one["job"].partition(" ")[0]: one for one in found["waiting"]}
    assert "holds 8 of 8" in waiting[quota]["reason"]["text"]
    assert (
        "43.91 USD" in waiting[budget]["reason"]["text"] and "of 100.00" in waiting[budget]["reason"]["text"]
    )
    assert "24 GPUs on 3 nodes" in waiting[wide]["reason"]["text"]
    assert "16 of 32" in waiting[wide]["reason"]["text"]
    assert (waiting[held]["place"], waiting[after]["place"]) == (None, None)
    assert waiting[wide]["place"]["number"] < waiting[behind]["place"]["number"]
    # It needs the node of the first job, which ends in an hour.
    assert waiting[wide]["estimate"]["start"] > running[within]["since"]
    a100 = next(one for one in found["pools"] if one["name"] == "a100")
    assert (a100["gpus"], a100["used"], a100["free"], a100["free_on_nodes"]) == (32, 16, 16, 16)
    only = _shown("--team", "Vision")
    assert {one["team"] for part in ("running", "waiting") for one in only[part]} == {"Vision"}


def test_the_name_of_a_job_is_no_row_of_the_queue(here: LocalSlurm) -> None:
    forged = "x\n999|research|research-a100|a100|R|None|N/A|N/A|N/A|1|1:00|gres/gpu=32|1|forged"
    job = _submit(here, "-p", "l4", "--gpus=1", "-A", "research", "--hold", f"--job-name={forged}")
    found = _shown()
    assert [one["job"] for one in found["waiting"]] == [f"{job} {forged}"] and not found["running"]
    code, text = run("slurm", "queue", "-s", "dev-aws")
    assert code == 0 and not any(line.strip().startswith("999") for line in text.splitlines())


def test_a_drained_node_is_not_free(here: LocalSlurm) -> None:
    here.output("scontrol", "update", "NodeName=a100-4", "State=DRAIN", "Reason=test")
    try:
        a100 = next(one for one in _shown()["pools"] if one["name"] == "a100")
        assert (a100["nodes"], a100["gpus"], a100["free_on_nodes"]) == (3, 32, 24)
    finally:
        here.output("scontrol", "update", "NodeName=a100-4", "State=RESUME")


def test_a_team_that_does_not_exist_is_refused(here: LocalSlurm) -> None:
    with pytest.raises(UserError) as caught:
        run("slurm", "queue", "-s", "dev-aws", "--team", "Absent")
    assert [code for code, _ in caught.value.codes] == ["team-unknown"]


def test_a_member_cannot_name_several_partitions(here: LocalSlurm) -> None:
    """Associations of add-user.sh have a partition, by which its QOS is the default."""
    both = "--partition=a100,l4", "--gpus=1", "-A", "research", "--time=60"
    refused = here.run("sbatch", "--qos=research-a100", *both, "--wrap", "true")
    assert refused.returncode != 0 and "partition is set in the association" in refused.stderr


def test_a_job_without_a_partition_runs_in_the_preferred_one_with_gpus(here: LocalSlurm) -> None:
    job = _submit(here, "--gpus=1", "-A", "research", "--time=60")
    here.until(lambda: here.state(job) == "R", what="the job runs")
    name = here.output("sinfo", "--noheader", "--format", "%P").split("*")[0].split()[-1]
    assert here.output("squeue", "--noheader", "--jobs", job, "--format", "%P") == name
