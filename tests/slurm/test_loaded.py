"""Generated files as the daemons of Slurm 22.05 understand them."""

import re

import pytest

from rehearsal.slurm.cluster import LocalSlurm
from tests.slurm.conftest import BUDGET_USD

# p4d.24xlarge on demand in us-east-1 (infra/catalog/aws/tables/prices.toml), 8 GPUs.
NODE_USD = 21.9576


def submit(slurm: LocalSlurm, *options: str, wrap: str = "sleep 60") -> str:
    """The number of a job."""
    return slurm.output("sbatch", "--parsable", "--output=%j.out", *options, "--wrap", wrap)


def refusal(slurm: LocalSlurm, *options: str) -> str:
    """What sbatch prints for a job that it refuses."""
    done = slurm.run("sbatch", "--parsable", *options, "--wrap", "true")
    assert done.returncode, done.stdout
    return done.stderr


def shown(slurm: LocalSlurm, job: str, field: str) -> str:
    """A field of a job."""
    found = re.search(rf"\b{field}=(\S+)", slurm.output("scontrol", "show", "job", job))
    assert found
    return found[1]


def test_daemons_accept_every_line(slurm: LocalSlurm) -> None:
    text = (slurm.folder / "log/slurmctld.log").read_text()
    complaints = {
        line.partition("] ")[2]
        for line in text.splitlines()
        if re.search(r"(?i)error|warning|invalid|ignor", line)
        and not re.search(
            r"state file|Information may be lost|(Jobs|Triggers|Reservations) may be lost", line
        )
    }
    assert complaints == set()
    rows = slurm.output("sinfo", "-hN", "-o", "%P %N %t %G %f %w").splitlines()
    assert rows[0] == "a100 a100-1 idle gpu:a100:8 p4d_24xlarge,on_demand,training 30"
    assert rows[-1] == "l4* l4-2 idle gpu:l4:1 g6_2xlarge,spot,interactive 10"
    assert len(rows) == 7
    # Every key that is generated has the value that the daemon has.
    has = dict(re.findall(r"^(\w+)\s+= (.*?)\s*$", slurm.output("scontrol", "show", "config"), re.MULTILINE))
    for key, value in {
        "PriorityFlags": "MAX_TRES",
        "PriorityUsageResetPeriod": "MONTHLY",
        "PriorityDecayHalfLife": "00:00:00",
        "AccountingStorageEnforce": "associations,limits,qos,safe",
        "PreemptMode": "REQUEUE",
        "EnforcePartLimits": "ALL",
        "TopologyPlugin": "topology/tree",
    }.items():
        assert has[key] == value, key


def test_accounts_may_be_written_again(slurm: LocalSlurm) -> None:
    def limits() -> str:
        return slurm.output(
            "sacctmgr", "-nP", "show", "assoc", "format=account,user,partition,share,grptresmins"
        )

    before = limits()
    slurm.output("bash", str(slurm.folder / "etc/accounts.sh"))
    assert limits() == before
    assert "research|||200|" in before
    # Thousandths of a dollar times 60 minutes.
    assert f"vision|||100|billing={BUDGET_USD * 60_000}" in before


def test_a_job_gets_its_part_of_a_node_and_is_billed_for_the_largest(slurm: LocalSlurm) -> None:
    two = submit(
        slurm, "-p", "a100", "-A", "research", "--gpus=2", wrap="echo $CUDA_VISIBLE_DEVICES; sleep 60"
    )
    cores = submit(slurm, "-p", "a100", "-A", "vision", "--cpus-per-task=48", "--mem=1G", "--qos=borrow")
    slurm.until(lambda: slurm.state(two) == slurm.state(cores) == "R", what="jobs run")
    assert shown(slurm, two, "QOS") == "research-a100"
    tres = dict(row.split("=") for row in shown(slurm, two, "TRES").split(","))
    assert (tres["cpu"], tres["gres/gpu"]) == ("24", "2")
    # In thousandths of a dollar an hour: a quarter of the node for 2 of 8 GPUs, half for half of its cores.
    assert int(tres["billing"]) == pytest.approx(NODE_USD * 1000 / 4, rel=0.001)
    half = dict(row.split("=") for row in shown(slurm, cores, "TRES").split(","))
    assert int(half["billing"]) == pytest.approx(NODE_USD * 1000 / 2, rel=0.001)


def test_quotas_hold_for_gpus_with_and_without_a_type(slurm: LocalSlurm) -> None:
    # 8 GPUs of Research in a100, of 32.
    for asked in ("--gpus-per-node=8", "--gpus-per-node=a100:8"):
        assert "QOSGrpGRES" in refusal(slurm, "-p", "a100", "-A", "research", "-N2", asked)
    within = submit(slurm, "-p", "a100", "-A", "research", "--gpus=6")
    beyond = submit(slurm, "-p", "a100", "-A", "research", "--gpus=a100:4")
    borrowed = submit(slurm, "-p", "a100", "-A", "research", "-q", "borrow", "-N2", "--gpus-per-node=8")
    slurm.until(lambda: slurm.state(within) == slurm.state(borrowed) == "R", what="jobs run")
    slurm.until(lambda: shown(slurm, beyond, "Reason") == "QOSGrpGRES", what="waits for the quota")


def test_a_team_over_its_budget_waits_or_is_refused(slurm: LocalSlurm) -> None:
    """$100 are 4.55 hours of a node of $21.9576."""
    node = ("-p", "a100", "-A", "vision", "--gpus-per-node=8")
    assert "BillingMinutes" in refusal(slurm, *node, "--time=05:00:00")
    running = submit(slurm, *node, "--time=04:00:00", "-q", "borrow")
    slurm.until(lambda: slurm.state(running) == "R", what="job runs")
    # What is left beside the running job is not enough.
    waits = submit(slurm, *node, "--time=01:00:00")
    slurm.until(lambda: "BillingMinutes" in shown(slurm, waits, "Reason"), what="waits for the budget")
    slurm.output("scancel", running)
    slurm.until(lambda: slurm.state(waits) == "R", what="the budget is free again")


def test_what_no_partition_can_run_is_refused(slurm: LocalSlurm) -> None:
    research = ("-A", "research", "-p")
    assert "node configuration" in refusal(slurm, *research, "a100", "-q", "borrow", "--gpus-per-node=9")
    assert "ime limit" in refusal(slurm, *research, "l4", "--gpus=1", "--time=13:00:00")
    assert "qos" in refusal(slurm, *research, "a100", "--gpus=1", "--qos=vision-a100").lower()
    assert "qos" in refusal(slurm, *research, "cpu", "--qos=research-a100").lower()
    assert "account" in refusal(slurm, "-A", "unknown", "-p", "a100", "--gpus=1").lower()


def test_nodes_of_a_job_are_below_one_switch(slurm: LocalSlurm) -> None:
    job = submit(slurm, "-p", "a100", "-A", "research", "-N2", "--gpus-per-node=1", "--switches=1")
    slurm.until(lambda: slurm.state(job) == "R", what="job runs")
    assert shown(slurm, job, "NodeList") in ("a100-[1-2]", "a100-[3-4]")
