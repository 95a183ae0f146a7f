"""The run of a job in MLflow, by the mlflow package where the image has it.

A tracking server that refuses or does not respond costs seconds and a line in the log, never the training:
every call has a timeout, and failures are in `reason`.
"""

import importlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from smoke_training.record.fields import TEXT_LIMIT
from smoke_training.record.gcp import api as gcp
from smoke_training.record.mlflow import NOT_SET, TrackingError, within
from smoke_training.runtime.imports import large

OPEN_S = 45.0  # limit for opening the run before the script starts; importing mlflow takes over 2 s of it
CLOSE_S = 20.0  # of the 120 s between SIGTERM and SIGKILL
NO_LIBRARY = "the image has no mlflow package; add it to requirements.txt"
# For this process only: its few calls must not wait for minutes (the default is 7 times 120 s). A
# script keeps the timeouts of its own environment.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
_SAMPLES = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"


class MlflowRun:
    """The record of one attempt of a run.

    `run_id` is None while there is no run; `problems` lists failures. A run that is created too late for the
    script is ended like any other.
    """

    def __init__(self, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._uri = environment.get("MLFLOW_TRACKING_URI", "")
        self._experiment = environment.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        # A server scaled to zero has to start first.
        self._wakes_s = gcp.WAKING_S if gcp.sleeps(environment) else 0.0
        self._say = say
        self._mlflow: Any = None
        self._client: Any = None
        self._monitor: Any = None
        self._opened = False
        self.run_id: str | None = None
        self.problems: list[str] = []

    def open(
        self, earlier: str | None, name: str, tags: Mapping[str, str], params: Mapping[str, str]
    ) -> None:
        """Resume the run `earlier`, or create one; it has its tags from the start."""
        if not self._uri:
            self._complain(NOT_SET)
            return
        opened_s = OPEN_S + self._wakes_s
        self._opened = self._try("the run was not begun", opened_s, self._open, earlier, name, tags, params)
        if self._opened:
            self._try("the machine is not sampled", CLOSE_S, self._sample)

    def variables(self, offline: str) -> dict[str, str]:
        """Return mlflow's variables for the script: this run, or the database `offline` without one."""
        if self._opened:
            return {"MLFLOW_RUN_ID": str(self.run_id), _SAMPLES: "false"}  # this process samples already
        return {"MLFLOW_TRACKING_URI": offline, "MLFLOW_RUN_ID": ""} if self._uri else {}

    def refresh(self) -> None:
        """Restart the sampling of the machine after an outage; call about once a minute."""
        if self._monitor is not None and not self._samples():
            self._try("the machine is not sampled", CLOSE_S, self._sample)

    def close(self, status: str, tags: Mapping[str, str], metrics: Mapping[str, float]) -> None:
        """End the run as FINISHED, FAILED or KILLED."""
        if self.run_id is not None:
            self._try("the run was not ended", CLOSE_S, self._close, status, tags, metrics)

    def _try(self, what: str, seconds: float, work: Callable[..., None], *arguments: object) -> bool:
        try:
            within(seconds, lambda: work(*arguments))
        except Exception as error:  # mlflow and its plug-ins raise any type; training continues
            self._complain(f"{what}: {_text(error)}"[:500])
            return False
        return True

    def _complain(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            self._say(f"MLflow: {text}")

    def _open(
        self, earlier: str | None, name: str, tags: Mapping[str, str], params: Mapping[str, str]
    ) -> None:
        for variable, value in _PATIENCE.items():
            os.environ.setdefault(variable, value)
        if self._wakes_s:
            os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = f"{self._wakes_s:.0f}"
        try:
            self._mlflow = large("mlflow")
        except ImportError as error:
            raise TrackingError(NO_LIBRARY) from error
        self._mlflow.set_tracking_uri(self._uri)
        self._client = self._mlflow.MlflowClient()
        run = self._again(earlier) if earlier else None
        if run is None:
            run = self._client.create_run(self._made(), run_name=name or None, tags=dict(tags))
        else:
            self._client.update_run(earlier, status="RUNNING")
            self._log(str(earlier), tags=tags)
        self.run_id = str(run.info.run_id)
        known = run.data.params  # MLflow refuses to change one
        self._log(self.run_id, params={key: value for key, value in params.items() if key not in known})
        unlike = [key for key, value in params.items() if key in known and known[key] != value[:TEXT_LIMIT]]
        if unlike:
            self._complain(f"parameters that differ from those of the first attempt: {', '.join(unlike)}")

    def _again(self, earlier: str) -> Any:
        """Return the run of earlier attempts, None if it was deleted."""
        try:
            found = self._client.get_run(earlier)
        except self._mlflow.exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return None if found.info.lifecycle_stage == "deleted" else found

    def _made(self) -> str:
        """Return the id of the experiment; another process may create it at the same time."""
        found = self._client.get_experiment_by_name(self._experiment)
        if found is None:
            try:
                return str(self._client.create_experiment(self._experiment))
            except self._mlflow.exceptions.MlflowException:
                found = self._client.get_experiment_by_name(self._experiment)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _log(
        self,
        run: str,
        tags: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        entities, now = self._mlflow.entities, int(time.time() * 1000)
        self._client.log_batch(
            run,
            metrics=[entities.Metric(key, value, now, 0) for key, value in (metrics or {}).items()],
            params=[entities.Param(key, value[:TEXT_LIMIT]) for key, value in (params or {}).items()],
            tags=[entities.RunTag(key, value) for key, value in (tags or {}).items()],
        )

    def _sample(self) -> None:
        """Record system metrics of this machine in the run, in mlflow's own thread."""
        logging.getLogger("mlflow.system_metrics").setLevel(logging.WARNING)  # the log is the script's
        module = importlib.import_module("mlflow.system_metrics.system_metrics_monitor")
        self._monitor = module.SystemMetricsMonitor(self.run_id, resume_logging=True)
        self._monitor.start()

    def _samples(self) -> bool:
        thread = self._monitor._process
        return thread is not None and thread.is_alive()

    def _close(self, status: str, tags: Mapping[str, str], metrics: Mapping[str, float]) -> None:
        if self._monitor is not None:
            self._monitor.finish()
        self._log(str(self.run_id), tags=tags, metrics=metrics)
        self._client.set_terminated(self.run_id, status)


def _text(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, TrackingError) else f"{type(error).__name__}: {text}"
