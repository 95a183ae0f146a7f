"""The MLflow record of a finished run. An outage never changes the verdict; the result says it.

One run in MLflow per run of ours, found by its tag `trainstack.run_id`: recording a second time completes
what an interrupted first time left, and adds nothing to a complete record.
"""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.record import fields, server
from smoke_training.record.mlflow import Run, Tracking, TrackingError

PATIENCE_S = 60.0  # for the whole record; a tracking server may be slow but must not hold up a deploy
RECORDED = "trainstack.recorded"  # our run's id once everything is there: the last thing that is written


def record(
    result: Mapping[str, Any],
    found: Evidence,
    environment: Mapping[str, str],
    deadline: float,
    artifacts: Mapping[str, bytes] | None = None,
) -> dict[str, object]:
    """Log one run; returns the result's `mlflow` part: synced or not, the run id, and the reason if not.

    `deadline` is in monotonic seconds; `artifacts` are files by name, beside the result itself.
    """
    seconds = min(PATIENCE_S, deadline - time.monotonic())
    attempt = _Attempt(result, found, environment)
    try:
        run = server.within(seconds, lambda: attempt.make(seconds, artifacts or {}))
    except TrackingError as error:
        return {"synced": False, "run_id": attempt.run_id, "reason": str(error)[:500]}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        # A figure that cannot be turned into a metric must cost the record, not the verdict.
        reason = f"the record cannot be made: {type(error).__name__}: {error}"
        return {"synced": False, "run_id": attempt.run_id, "reason": reason[:500]}
    return {"synced": True, "run_id": run, "reason": None}


class _Attempt:
    """One try to record; `run_id` is MLflow's id of the run as soon as it is known."""

    def __init__(self, result: Mapping[str, Any], found: Evidence, environment: Mapping[str, str]) -> None:
        self._result, self._found, self._environment = result, found, environment
        self._started = int(datetime.fromisoformat(str(result["started"])).timestamp() * 1000)
        self.run_id: str | None = None

    def make(self, seconds: float, artifacts: Mapping[str, bytes]) -> str:
        """Everything, in an order that leaves no half-made run looking whole; returns MLflow's run id."""
        result, tags = self._result, fields.tags(self._result)
        missing = [key for key in fields.MANDATORY if not tags.get(key)]
        if missing:
            raise TrackingError(f"mandatory tags are missing: {', '.join(missing)}")
        tracking = server.connect(self._environment, seconds)
        run = self._open(tracking, tags)
        self.run_id = run.id
        if run.tags.get(RECORDED) == result["run_id"]:
            return run.id
        ended = self._started + int(float(result["duration_s"]) * 1000)
        tracking.log(
            run.id, fields.metrics(result, self._found, ended), fields.params(result, self._found), tags
        )
        # The status before the artifacts: a run that is cut off here must not look as if it still ran.
        tracking.finish(run.id, fields.run_name(result), fields.run_status(result), ended)
        content = {**result, "mlflow": {"synced": True, "run_id": run.id, "reason": None}}
        tracking.upload(run.artifact_uri, "result.json", json.dumps(content, indent=1).encode())
        for name, data in artifacts.items():
            tracking.upload(run.artifact_uri, name, data)
        tracking.log(run.id, tags={RECORDED: str(result["run_id"])})
        return run.id

    def _open(self, tracking: Tracking, tags: Mapping[str, str]) -> Run:
        """The run that MLFLOW_RUN_ID names, the one that an earlier try made, or a new one."""
        given = self._environment.get("MLFLOW_RUN_ID")
        if given:
            return tracking.run(given)
        experiment = tracking.experiment(fields.EXPERIMENT)
        earlier = tracking.search(experiment, {fields.RUN_ID: str(self._result["run_id"])}, 1)
        if earlier:
            return earlier[0]
        return tracking.create_run(experiment, fields.run_name(self._result), self._started, tags)
