"""Alarms of a Slurm system by figures of its login node, and the files that publish them (pure).

No page of the User Guide of AWS PCS that was found names metrics of the service (2026-11-30), so the figures
are those of Slurm's own commands.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from infra.slurm.figures import SlurmAlarm, namespace
from infra.slurm.loading import PROFILE
from infra.slurm.system import SlurmSystem

NAME: Final = "trainstack-metrics"
_PROGRAM: Final = Path(__file__).resolve().parents[2] / "agents" / "slurm" / "metrics.py"
_WAIT_MINUTES: Final = 120
"""As `QueueWaitAboveTwoHours` of a cluster."""
_BUDGET_PERCENT: Final = 80
_BLOCK_MINUTES: Final = 24 * 60


def alarms(system: SlurmSystem) -> Iterator[SlurmAlarm]:
    """The alarms of a system."""
    yield SlurmAlarm(
        "controller", "ControllerUp", "below", 1, 10,
        "The controller does not answer, or the login node reports nothing.", "breaching",
    )  # fmt: skip
    yield SlurmAlarm("nodes-down", "NodesDown", "above", 0, 15, "Nodes are down, drained or do not respond.")
    text = "A job has waited more than two hours for nodes."
    yield SlurmAlarm("queue-waits", "LongestWaitMinutes", "above", _WAIT_MINUTES, 15, text)
    always = sum(one.always * one.machine.gpus for one in system.partitions)
    minutes = 10 * -(-2 * system.idle_s // 600)
    text = f"GPUs of running nodes are idle for {minutes} minutes, beyond those of min_nodes."
    yield SlurmAlarm("gpus-idle", "GpusIdle", "above", always, minutes, text)
    if any(one.monthly_usd or one.monthly_gpu_hours for one in system.accounts):
        text = f"A team has used or promised {_BUDGET_PERCENT} % of its budget of the month."
        yield SlurmAlarm("budget", "BudgetUsedPercent", "above", _BUDGET_PERCENT, 5, text)
    if ends(system):
        text = "A capacity block ends within a day."
        yield SlurmAlarm("block-ends", "BlockMinutesLeft", "below", _BLOCK_MINUTES, 5, text, "notBreaching")


def ends(system: SlurmSystem) -> list[str]:
    """Times after which no job may run on a capacity block, in UTC."""
    return [one.closes.isoformat(timespec="seconds") for one in system.partitions if one.closes]


def files(system: SlurmSystem, region: str) -> dict[str, str]:
    """Files of the login node by path."""
    program = f"{system.options.folder}/metrics.py"
    return {
        program: _PROGRAM.read_text(encoding="utf-8"),
        f"/etc/systemd/system/{NAME}.service": _unit(
            "[Unit]",
            "Description=Figures of Slurm for CloudWatch",
            "[Service]",
            "Type=oneshot",
            f"Environment=NAMESPACE={namespace(system.cluster)} REGION={region}",
            f'Environment="BLOCKS={" ".join(ends(system))}"',
            f"ExecStart=/bin/bash -c '[ ! -r {PROFILE} ] || . {PROFILE}; exec python3 {program}'",
        ),
        f"/etc/systemd/system/{NAME}.timer": _unit(
            "[Unit]",
            "Description=Figures of Slurm for CloudWatch",
            "[Timer]",
            "OnCalendar=minutely",
            "[Install]",
            "WantedBy=timers.target",
        ),
    }


def start() -> Sequence[str]:
    """Commands of root that start the timer."""
    return ("systemctl daemon-reload", f"systemctl enable --now {NAME}.timer")


def _unit(*lines: str) -> str:
    return "\n".join((*lines, ""))
