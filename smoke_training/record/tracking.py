"""Runs in MLflow: record a finished one, find the baseline of earlier ones.

One run in MLflow per validation run, found by its tag `trainstack.run_id`: recording again completes an
interrupted record, and adds nothing to a complete one. An outage is reported and changes no verdict.
"""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import Lookup
from smoke_training.names import EXPERIMENT
from smoke_training.reader import UNFIT, DocumentError
from smoke_training.record import accepted, fields, mlflow
from smoke_training.record.gcp import api as gcp
from smoke_training.record.mlflow import RecordedRun, TrackingError, TrackingServer
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import Fingerprint, RunBaseline

PATIENCE_S = 60.0  # for the whole record; a slow tracking server must not delay a deploy
LOOKUP_PATIENCE_S = 5.0  # the most that a slow tracking server delays a run
RECORDED = "trainstack.recorded"  # the run's id once the record is complete: written last


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
    attempt, reason = _Attempt(result, found, environment), None
    try:
        # Here, not in the thread: missing settings are reported even when no time is left.
        tracking = mlflow.connect(environment, seconds)
        mlflow.within(seconds, lambda: attempt.make(tracking, artifacts or {}))
    except TrackingError as error:
        reason = str(error)[:500]
    except UNFIT as error:
        # A figure that cannot be converted to a metric must fail the record, not the verdict.
        reason = f"the record cannot be made: {type(error).__name__}: {error}"[:500]
    return {"synced": reason is None, "run_id": attempt.run_id, "reason": reason}


class _Attempt:
    """One try to record; `run_id` is MLflow's id of the run once known."""

    def __init__(self, result: Mapping[str, Any], found: Evidence, environment: Mapping[str, str]) -> None:
        self._result, self._found, self._environment = result, found, environment
        self._started = int(datetime.fromisoformat(str(result["started"])).timestamp() * 1000)
        self.run_id: str | None = None

    def make(self, tracking: TrackingServer, artifacts: Mapping[str, bytes]) -> None:
        """Record everything, in an order in which a partial record never looks complete."""
        result, tags = self._result, fields.tags(self._result)
        if missing := [key for key, value in tags.items() if not value]:
            raise TrackingError(f"tags without a value: {', '.join(missing)}")
        run = self._open(tracking, tags)
        self.run_id = run.id
        if run.tags.get(RECORDED) == result["run_id"]:
            return
        ended = self._started + int(float(result["duration_s"]) * 1000)
        points, params = fields.metrics(result, self._found, ended), fields.params(result, self._found)
        tracking.log(run.id, points, params, tags)
        # The status before the artifacts: a run interrupted here must not look running.
        status = "FINISHED" if result["verdict"] in ("PASS", "INCONCLUSIVE", "SKIPPED") else "FAILED"
        tracking.update(run.id, status, ended, fields.run_name(result))
        content = {**result, "mlflow": {"synced": True, "run_id": run.id, "reason": None}}
        for name, data in {"result.json": json.dumps(content, indent=1).encode(), **artifacts}.items():
            tracking.upload(run.artifact_uri, name, data)
        tracking.log(run.id, tags={RECORDED: str(result["run_id"])})

    def _open(self, tracking: TrackingServer, tags: Mapping[str, str]) -> RecordedRun:
        """Return the run of MLFLOW_RUN_ID, of an earlier attempt, or a new one."""
        if given := self._environment.get("MLFLOW_RUN_ID"):
            return tracking.run(given)
        experiment = tracking.experiment(EXPERIMENT)
        if earlier := tracking.search(experiment, {fields.RUN_ID: str(self._result["run_id"])}, 1):
            return earlier[0]
        return tracking.create_run(experiment, fields.run_name(self._result), self._started, tags)


def accept(result: Mapping[str, Any], known: RunBaseline, environment: Mapping[str, str]) -> str:
    """Tag the run in MLflow as accepted, so that later ones find it; returns its id, or why there is none."""
    run = result["mlflow"]["run_id"]
    if run is None or not environment.get("MLFLOW_TRACKING_URI"):
        return mlflow.NOT_SET if run else f"not recorded: {result['mlflow']['reason']}"
    tags = {fields.ACCEPTED: "true", **fields.baseline_tags(known)}
    if (decided := known.acceptance) is not None:
        tags |= {f"{fields.ACCEPTED}.{key}": getattr(decided, key)[:500] for key in ("by", "at", "because")}
    try:
        mlflow.connect(environment, PATIENCE_S).log(run, tags=tags)
    except TrackingError as error:
        raise DocumentError([f"MLflow run {run}: {error}"]) from error
    return f"run {run}"


def find(stack: str, own: Fingerprint, environment: Mapping[str, str], seconds: float) -> Lookup:
    """Return the `baseline` evidence: the accepted runs of the same fingerprint, or the reason for none.

    Never raises. The search takes at most `seconds`, and at most `LOOKUP_PATIENCE_S`; longer for a server
    that scales to zero.
    """
    if not environment.get("MLFLOW_TRACKING_URI"):
        return _none(mlflow.NOT_SET)
    bound = min(gcp.WAKING_S if gcp.sleeps(environment) else LOOKUP_PATIENCE_S, seconds)
    try:
        return mlflow.within(bound, lambda: _find(stack, own, environment, bound))
    except TrackingError as error:
        return _none(f"tracking unreachable: {error}")
    except UNFIT as error:
        return _none(f"the recorded runs cannot be read: {type(error).__name__}: {error}")


def _find(stack: str, own: Fingerprint, environment: Mapping[str, str], seconds: float) -> Lookup:
    tracking = mlflow.connect(environment, seconds)
    experiment = tracking.existing_experiment(EXPERIMENT)
    if experiment is None:
        return _none("no run is recorded yet")
    wanted = {fields.STACK: stack, fields.ACCEPTED: "true"}
    runs = tracking.search(experiment, {**wanted, fields.FINGERPRINT: own.digest()}, baselines.MAX_RUNS)
    # A run that was accepted in spite of a regression is the start of a new normal.
    start = next((n for n, run in enumerate(runs) if run.tags.get(fields.REGRESSION) == "true"), len(runs))
    known = map(_baseline, runs[: start + 1])
    if usable := [found for found in known if found and found.fingerprint == own]:
        document = baselines.render(accepted.merged(usable))
        source = f"found in MLflow, the last of {len(usable)} accepted runs alike"
        return Lookup(document=document, source=source, reason=None)
    others = [found for found in map(_baseline, tracking.search(experiment, wanted, 1)) if found]
    if not others:
        return _none(f"no accepted run of stack {stack} is recorded")
    unlike = "; ".join(baselines.differences(own, others[0].fingerprint))
    return _none(f"no accepted run of stack {stack} is like this one; its last one differs: {unlike}")


def _baseline(run: RecordedRun) -> RunBaseline | None:
    """Return the baseline of a run; None without a readable one (another version, an edited tag)."""
    try:
        return baselines.parse(json.loads(run.tags.get(fields.BASELINE, "")))
    except ValueError:
        return None


def _none(reason: str) -> Lookup:
    return Lookup(document=None, source="MLflow", reason=reason[:500])
