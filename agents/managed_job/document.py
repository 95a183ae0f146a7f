"""The record of a job as a file, whether or not there is a tracking server: `run.json` in its output."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.managed_job.job_node import JobNode
from agents.managed_job.ledger import AttemptLedger
from agents.managed_job.settings import JobSettings
from smoke_training.record.fields import TEXT_LIMIT

NAME = "run.json"
SCHEMA = "trainstack.job-run/1"
RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"  # the statuses of MLflow
_DECLARED = ("owner", "person", "team", "task", "dataset", "code_version")


@dataclass
class JobRecord:
    """One attempt of a run: its fixed description and its progress."""

    settings: JobSettings
    place: JobNode
    machine: Mapping[str, str]
    ledger: AttemptLedger
    status: str = RUNNING
    exit_code: int | None = None
    reason: str | None = None
    ended: float | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def machine_type(self) -> str:
        """Machine type as the service names it, else as the submitter requested it."""
        return self.place.machine or self.settings.machine

    @property
    def cost_usd(self) -> float | None:
        """Price of all attempts, from the start of each container; None without a price."""
        price = self.settings.usd_per_hour
        return None if price is None else price * self.ledger.seconds / 3600

    def tags(self) -> dict[str, str]:
        """Tags of the run in MLflow; a missing value is "unknown", so that no tag is missing."""
        settings, place = self.settings, self.place
        declared = {name: getattr(settings, name) for name in _DECLARED}
        wanted: dict[str, object] = {
            **{name: declared[name] for name in ("owner", "team", "task", "dataset")},
            "status": self.status,
            "mlflow.source.name": settings.script,
            "mlflow.source.type": "JOB",
            "mlflow.user": settings.person or settings.owner,
            "trainstack.person": settings.person,
            "trainstack.stack": settings.stack,
            "trainstack.run": settings.run,
            "trainstack.job": place.job,
            "trainstack.code_version": settings.code_version,
            "trainstack.image_digest": settings.image,
            "trainstack.instance_type": self.machine_type,
            "trainstack.nodes": place.nodes,
            "trainstack.gpus_per_node": settings.gpus,
            "trainstack.interruptions": self.ledger.interruptions,
            **{f"trainstack.{name}": value for name, value in self.machine.items() if name != "image"},
        }
        if settings.missing:
            wanted["trainstack.incomplete"] = ", ".join(settings.missing)
        if self.status != RUNNING:
            wanted |= {"trainstack.exit_code": self.exit_code, "trainstack.reason": self.reason or "none"}
        return {name: _text(value) for name, value in wanted.items()}

    def params(self) -> dict[str, str]:
        """Parameters of the run in MLflow, unchanged by an interruption."""
        return {**self.parameters, "nodes": str(self.place.nodes), "gpus_per_node": str(self.settings.gpus)}

    def metrics(self) -> dict[str, float]:
        """Duration and cost of all attempts."""
        found = {"job/duration_seconds": self.ledger.seconds}
        if self.cost_usd is not None:
            found["job/cost_usd"] = self.cost_usd
        return found

    def document(self, mlflow_run_id: str | None, problems: list[str]) -> dict[str, object]:
        """Return `run.json`: times in seconds since 1970, duration and cost of all attempts together."""
        settings = self.settings
        return {
            "schema": SCHEMA,
            "run": settings.run or None,
            "job": self.place.job,
            "stack": settings.stack or None,
            **{name: getattr(settings, name) or None for name in _DECLARED},
            "incomplete": settings.missing,
            "script": settings.script,
            "arguments": list(settings.arguments),
            "params": dict(self.params()),
            "machine": self.machine_type or None,
            "nodes": self.place.nodes,
            "gpus_per_node": settings.gpus,
            "environment": dict(self.machine),
            "status": self.status,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "started": self.ledger.attempts[0].began if self.ledger.attempts else None,
            "ended": self.ended,
            "duration_s": self.ledger.seconds,
            "cost_usd": self.cost_usd,
            "interruptions": self.ledger.interruptions,
            "mlflow": {"run_id": mlflow_run_id, "recorded": not problems, "problems": problems},
        }


def _text(value: object) -> str:
    return "unknown" if value in (None, "") else str(value)[:TEXT_LIMIT]
