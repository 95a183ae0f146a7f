"""Figures from the output of Slurm's commands."""

import datetime

from agents.slurm import metrics

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)


def row(name: str, state: str, gpus: str = "", used: str = "") -> str:
    return f"{name:<128}{state:<32}{gpus:<256}{used:<256}"


def test_nodes_are_down_idle_or_off() -> None:
    text = "\n".join(
        [
            row("a-1", "mixed", "gpu:a100:8", "gpu:a100:6(IDX:0-5)"),
            row("a-1", "mixed", "gpu:a100:8", "gpu:a100:6(IDX:0-5)"),  # of a second partition
            row("a-2", "drained", "gpu:a100:8", "gpu:a100:0(IDX:N/A)"),
            row("a-3", "idle~", "gpu:a100:8", "gpu:a100:0(IDX:N/A)"),  # powered off
            row("a-4", "allocated*", "gpu:a100:8", "gpu:a100:8(IDX:0-7)"),  # does not answer
            row("c-1", "idle", "(null)", "gpu:0"),
        ]
    )
    assert metrics.of_nodes(text) == {"NodesDown": 2, "GpusRunning": 8, "GpusUsed": 6, "GpusIdle": 2}


def test_a_wait_is_one_for_nodes_not_for_a_quota_or_its_owner() -> None:
    text = "2026-11-30T08:00:00 QOSGrpGRES\n2026-11-30T07:00:00 JobHeldUser\n2026-11-30T10:30:00 Resources\n"
    assert metrics.of_queue(NOW, text) == {"JobsWaiting": 3, "LongestWaitMinutes": 90}
    assert metrics.of_queue(NOW, "") == {"JobsWaiting": 0, "LongestWaitMinutes": 0}


def test_a_budget_counts_what_is_used_and_promised() -> None:
    text = (
        "root||||\n"
        "vision||billing=1000,gres/gpu=500|cpu=9,billing=300,gres/gpu=50|cpu=1,billing=600,gres/gpu=5\n"
        "vision|ada|billing=10|billing=300|billing=600\n"
        "speech||||\n"
    )
    assert metrics.of_budgets(text) == {"BudgetUsedPercent": 90}
    assert metrics.of_budgets("speech||||\n") == {}


def test_the_end_of_the_next_block_counts_and_a_silent_controller_is_reported() -> None:
    ends = "2026-11-30T11:00:00+00:00 2026-12-01T12:00:00+00:00"
    found = metrics.collected(NOW, ends)  # no Slurm on PATH
    assert found == {"ControllerUp": 0, "BlockMinutesLeft": 1440}
