"""Trials as runs in MLflow, nested below the run of the job; nothing where there is none."""

import importlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal import Entry

PARENT = "mlflow.parentRunId"  # what makes a run a child in MLflow's pages


class Trials:
    """Begins, goes on with and ends the runs of trials. A server that fails costs the record alone."""

    def __init__(self) -> None:
        self._parent = os.environ.get("MLFLOW_RUN_ID", "")
        self._mlflow: Any = None
        if self._parent:
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
            self._mlflow = importlib.import_module("mlflow")
            self._client = self._mlflow.MlflowClient()

    def record(self, entry: Entry, settings: Mapping[str, float], status: str) -> Entry:
        """Record a round of a trial in its run, or in a new one; the entry with the id of that."""
        if self._mlflow is None:
            return entry
        try:
            return replace(entry, run_id=self._record(entry, settings, status))
        except self._mlflow.exceptions.MlflowException as error:
            sys.stderr.write(f"trial {entry.trial} is not recorded: {' '.join(str(error).split())[:200]}\n")
            return entry

    def _record(self, entry: Entry, settings: Mapping[str, float], status: str) -> str:
        run = entry.run_id
        if run is None:
            experiment = self._client.get_run(self._parent).info.experiment_id
            made = self._client.create_run(
                experiment, run_name=f"trial-{entry.trial}", tags={PARENT: self._parent}
            )
            run = str(made.info.run_id)
        entities, now = self._mlflow.entities, int(time.time() * 1000)
        self._client.log_batch(
            run,
            metrics=[entities.Metric("loss", entry.loss, now, entry.steps)],
            params=[entities.Param(name, str(value)) for name, value in settings.items()],
        )
        self._client.set_terminated(run, status)
        return run
