"""The run of a job in MLflow, by requests of this package: images need no mlflow package for it.

A tracking server that refuses or does not respond costs seconds and a line in the log, never the training:
every call has a timeout, and failures are in `reason`. The package is used for samples of the machine alone.
"""

import ast
import importlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from smoke_training.record.fields import TEXT_LIMIT
from smoke_training.record.gcp import api as gcp
from smoke_training.record.mlflow import (
    NOT_SET,
    MetricPoint,
    RecordedRun,
    TrackingError,
    TrackingServer,
    connect,
    within,
)
from smoke_training.runtime.imports import large

OPEN_S = 45.0  # limit for opening the run before the script starts
CLOSE_S = 20.0  # of the 120 s between SIGTERM and SIGKILL
NO_LIBRARY = "the image has no mlflow package; add it to requirements.txt"
# mlflow's variables, for this process only: its requests must not wait for minutes (the default is 7 times
# 120 s). A script keeps the timeouts of its own environment.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
_SAMPLES = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"


class MlflowRun:
    """The record of one attempt of a run.

    `run_id` is None while there is no run; `problems` lists failures. A run that is created too late for the
    script is ended like any other.
    """

    def __init__(self, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._environment = environment
        self._uri = environment.get("MLFLOW_TRACKING_URI", "")
        self._experiment = environment.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        # A server scaled to zero has to start first.
        self._wakes_s = gcp.WAKING_S if gcp.sleeps(environment) else 0.0
        self._say = say
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

    def variables(self, offline: str, folder: Path) -> dict[str, str]:
        """Return mlflow's variables for the script: this run, or the database `offline` without one.

        mlflow refuses the run of a variable where a script has set another experiment (mlflow 3.17,
        fluent.py, start_run), so a `folder` with such a script gets none: its runs are its own.
        """
        if self._opened:
            run = {} if _sets_experiment(folder) else {"MLFLOW_RUN_ID": str(self.run_id)}
            if not run:
                self._say("MLflow: the script sets an experiment, so its runs are apart from the job's")
            return {**run, _SAMPLES: "false"}  # this process samples already
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

    def _server(self, seconds: float) -> TrackingServer:
        request_s, retries = ({**_PATIENCE, **self._environment}[name] for name in _PATIENCE)
        return connect(self._environment, seconds, max(float(request_s), self._wakes_s), int(retries))

    def _open(
        self, earlier: str | None, name: str, tags: Mapping[str, str], params: Mapping[str, str]
    ) -> None:
        server = self._server(OPEN_S + self._wakes_s)
        run = self._again(server, earlier) if earlier else None
        if run is None:
            experiment = server.experiment(self._experiment)
            run = server.create_run(experiment, name, _now(), tags)
        else:
            server.update(run.id, "RUNNING")
            server.log(run.id, tags=tags)
        self.run_id, known = run.id, run.params  # MLflow refuses to change one
        texts = {key: value[:TEXT_LIMIT] for key, value in params.items()}
        server.log(run.id, params={key: value for key, value in texts.items() if key not in known})
        unlike = [key for key, value in texts.items() if key in known and known[key] != value]
        if unlike:
            self._complain(f"parameters that differ from those of the first attempt: {', '.join(unlike)}")

    def _again(self, server: TrackingServer, earlier: str) -> RecordedRun | None:
        """Return the run of earlier attempts, None if it was deleted."""
        try:
            found = server.run(earlier)
        except TrackingError as error:
            if error.status != 404:
                raise
            return None
        return None if found.deleted else found

    def _sample(self) -> None:
        """Record system metrics of this machine in the run, in mlflow's own thread."""
        for variable, value in _PATIENCE.items():
            os.environ.setdefault(variable, value)
        try:
            large("mlflow").set_tracking_uri(self._uri)
        except ImportError as error:
            raise TrackingError(NO_LIBRARY) from error
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
        server, now = self._server(CLOSE_S), _now()
        points = [MetricPoint(key, value, 0, now) for key, value in metrics.items()]
        server.log(str(self.run_id), points, tags=tags)
        server.update(str(self.run_id), status, now)


def _sets_experiment(folder: Path) -> bool:
    """Report whether a file of the code chooses an experiment other than the variable's."""
    contents = (path.read_bytes() for path in folder.rglob("*.py") if path.is_file())
    calls = (call for content in contents if b"set_experiment" in content for call in _choices(content))
    return any("MLFLOW_EXPERIMENT_NAME" not in call for call in calls)


def _choices(content: bytes) -> Iterator[str]:
    """Calls of mlflow's `set_experiment` in a program, under each name that it imports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the script are for its own log
            nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules = [one for one in node.names if one.name.partition(".")[0] == "mlflow"]
            names |= {f"{one.asname or 'mlflow'}.set_experiment" for one in modules}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mlflow":
            names |= {one.asname or one.name for one in node.names if one.name == "set_experiment"}
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield ast.unparse(node)


def _now() -> int:
    return int(time.time() * 1000)


def _text(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, TrackingError) else f"{type(error).__name__}: {text}"
