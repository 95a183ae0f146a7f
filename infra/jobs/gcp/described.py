"""Converts the description of a custom job of Vertex AI to the record of every service (pure).

States are those of JobState in the service's API (googleapis/python-aiplatform types/job_state.py).
"""

import datetime
from collections.abc import Mapping
from typing import Any

from infra.jobs.service import JobPhase, JobState, Moment, PhaseChange, ServiceJob
from infra.launchers.gcp.vertex import label_key
from infra.naming import TAG_PREFIX

WEEK_S = 7 * 86_400
"""Default time limit of a job (types/custom_job.py, Scheduling.timeout)."""
# Of a partially succeeded job, "some results may be missing". Such jobs and expired ones are over, although
# the SDK's own wait ignores these states (python-aiplatform jobs.py, `_JOB_COMPLETE_STATES`). Paused jobs do
# not run.
_STATES = {
    "JOB_STATE_QUEUED": (JobState.RUNNING, JobPhase.WAITING),
    "JOB_STATE_PENDING": (JobState.RUNNING, JobPhase.WAITING),
    "JOB_STATE_RUNNING": (JobState.RUNNING, JobPhase.TRAINING),
    "JOB_STATE_UPDATING": (JobState.RUNNING, JobPhase.TRAINING),
    "JOB_STATE_CANCELLING": (JobState.STOPPING, JobPhase.ENDING),
    "JOB_STATE_SUCCEEDED": (JobState.COMPLETED, JobPhase.OVER),
    "JOB_STATE_FAILED": (JobState.FAILED, JobPhase.OVER),
    "JOB_STATE_PARTIALLY_SUCCEEDED": (JobState.FAILED, JobPhase.OVER),
    "JOB_STATE_CANCELLED": (JobState.STOPPED, JobPhase.OVER),
    "JOB_STATE_EXPIRED": (JobState.STOPPED, JobPhase.OUT_OF_TIME),
    "JOB_STATE_PAUSED": (JobState.STOPPED, JobPhase.OVER),
}
_REASONS = {
    "JOB_STATE_PARTIALLY_SUCCEEDED": "Only a part of the job succeeded.",
    "JOB_STATE_PAUSED": "The service paused the job.",
}
# A job is cancelled some seconds after its time limit.
_LATE_S = 1


def described(found: Mapping[str, Any], share: float | None = None) -> ServiceJob:
    """The job of a CustomJob; `share`: its price divided by that on demand, None: unknown."""
    spec = found.get("jobSpec") or {}
    pools = spec.get("workerPoolSpecs") or [{}]
    variables = _variables(pools[0])
    scheduling, state = spec.get("scheduling") or {}, str(found.get("state"))
    times = {key: moment(found[key]) for key in ("createTime", "startTime", "endTime") if found.get(key)}
    started, ended = times.get("startTime"), times.get("endTime")
    ran_s = round((ended - started).total_seconds()) if started and ended else None
    spot, flex_start = (scheduling.get("strategy") == name for name in ("SPOT", "FLEX_START"))
    longest = _seconds(scheduling.get("timeout"))
    reached, phase = _STATES.get(state, (JobState.RUNNING, JobPhase.TRAINING))
    if state == "JOB_STATE_CANCELLED" and ran_s is not None and ran_s + _LATE_S >= longest:
        phase = JobPhase.OUT_OF_TIME  # no other field differs from a job that a user cancelled
    if phase is JobPhase.WAITING and started is not None:
        phase = JobPhase.INTERRUPTED
    base = str((spec.get("baseOutputDirectory") or {}).get("outputUriPrefix") or "").rstrip("/")

    def whose(key: str) -> str:
        label = (found.get("labels") or {}).get(label_key(f"{TAG_PREFIX}:{key}"), "")
        return str(variables.get(f"TRAINSTACK_{key.upper()}") or label)

    return ServiceJob(
        name=str(found.get("displayName", "")),
        stack=whose("stack"),
        person=whose("person"),
        team=whose("team"),
        machine=str((pools[0].get("machineSpec") or {}).get("machineType", "")),
        nodes=sum(int(pool.get("replicaCount") or 0) for pool in pools),
        spot=spot,
        flex_start=flex_start,
        reserved="reservationAffinity" in (pools[0].get("machineSpec") or {}),
        state=reached,
        phase=phase,
        reason=str((found.get("error") or {}).get("message") or _REASONS.get(state, "")),
        created=times["createTime"],
        ended=ended,
        max_run_s=longest,
        trained_s=ran_s,
        billed_s=None if ran_s is None else round(ran_s * (share or 1.0 if spot or flex_start else 1.0)),
        changes=tuple(_changes(times, phase, state)),
        model_uri=f"{base}/model" if base else "",
        checkpoint_uri=variables.get("TRAINSTACK_CHECKPOINT_URI") or (f"{base}/checkpoints" if base else ""),
        experiment=variables.get("MLFLOW_EXPERIMENT_NAME", ""),
    )


def moment(text: str) -> Moment:
    """A time in the format of Google's APIs, whose last digits Python does not parse."""
    head, _, rest = text.removesuffix("Z").partition(".")
    found = datetime.datetime.fromisoformat(f"{head}.{rest[:6].ljust(6, '0')}")
    return found.replace(tzinfo=datetime.UTC)


def _changes(times: Mapping[str, Moment], phase: JobPhase, state: str) -> list[PhaseChange]:
    found = [PhaseChange(times["createTime"], JobPhase.WAITING, "")]
    if "startTime" in times:
        found.append(PhaseChange(times["startTime"], JobPhase.TRAINING, ""))
    if "endTime" in times:
        found.append(PhaseChange(times["endTime"], phase, state))
    return found


def _variables(pool: Mapping[str, Any]) -> Mapping[str, str]:
    rows = (pool.get("containerSpec") or {}).get("env") or ()
    return {str(one["name"]): str(one.get("value") or "") for one in rows}


def _seconds(text: object) -> int:
    return round(float(str(text).removesuffix("s"))) if text else WEEK_S
