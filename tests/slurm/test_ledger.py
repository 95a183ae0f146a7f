"""GPU-seconds of 200 jobs by the ledger and by sacct itself."""

import datetime
import re

import pytest

from rehearsal.slurm.cluster import LocalSlurm
from tests.trainstack.cli.command import run_json

pytestmark = pytest.mark.more


def test_the_ledger_equals_sacct_to_the_second(slurm: LocalSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _rows(slurm)
    for team, gpus in (("research", 1), ("vision", 2)):
        slurm.output(
            *("sbatch", "-A", team, "-p", "a100", "-q", "borrow", f"--gpus={gpus}", "--cpus-per-task=1"),
            *(
                "--array=0-99",
                "--time=1",
                "--output=/dev/null",
                "--wrap",
                "sleep $((SLURM_ARRAY_TASK_ID % 3))",
            ),
        )
    slurm.until(lambda: not slurm.output("squeue", "-h"), 240, what="200 jobs end")
    slurm.until(lambda: len(_rows(slurm)) - len(before) >= 200, what="sacct has 200 jobs")
    for key, value in slurm.environment.items():
        monkeypatch.setenv(key, value)
    code, document = run_json("slurm", "ledger", "-s", "dev-aws")
    assert code == 0
    booked = {
        one["namespace"]: round(sum(line["held_hours"] for line in one["lines"]) * 3600)
        for one in document["teams"]
    }
    expected: dict[str, int] = {}
    for account, elapsed, gpus in _rows(slurm):
        expected[account] = expected.get(account, 0) + elapsed * gpus
    assert {name: amount for name, amount in booked.items() if amount} == expected
    assert expected["vision"] > 100


def _rows(slurm: LocalSlurm) -> list[tuple[str, int, int]]:
    """Account, elapsed seconds and GPUs of each ended attempt of this month with GPUs."""
    first = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-01")
    text = slurm.output("sacct", "-naXPD", "-S", first, "-o", "account,elapsedraw,alloctres,end")
    found = []
    for row in text.splitlines():
        account, elapsed, tres, end = row.split("|")
        gpus = re.search(r"gres/gpu=(\d+)", tres)
        if gpus and end != "Unknown":
            found.append((account, int(elapsed), int(gpus[1])))
    return found
