"""Log metrics of a run: a line each, and the job's run in MLflow if there is one."""

import importlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

Batch = TypeVar("Batch")
FLUSH_S = 30.0  # limit for the tracking server at the end of a run


class Metrics:
    """Logs from one process; with `silent` it logs nothing. MLflow is called in a separate thread."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._run = "" if silent else os.environ.get("MLFLOW_RUN_ID", "")
        self._mlflow: Any = None
        if self._run:
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
            self._mlflow = importlib.import_module("mlflow")
            self._client = self._mlflow.MlflowClient()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Print `step 10 loss 2.3456` and record the values."""
        self.say(f"step {step} " + " ".join(f"{name} {value:.6f}" for name, value in values.items()))
        self.record(step, values)

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._silent:
            print(text, flush=True)

    def record(self, step: int, values: Mapping[str, float]) -> None:
        """Record the values without printing; an outage of the server loses some and stops nothing."""
        if self._mlflow is not None:
            now = int(time.time() * 1000)
            points = [self._mlflow.entities.Metric(name, value, now, step) for name, value in values.items()]
            self._client.log_batch(self._run, metrics=points, synchronous=False)

    def close(self) -> None:
        """Wait for pending records, up to a limit."""
        if self._mlflow is not None:
            thread = threading.Thread(target=self._mlflow.flush_async_logging, daemon=True)
            thread.start()
            thread.join(FLUSH_S)

    def watched(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Iterable[Batch],
        done: int,
        every: int = 50,
    ) -> Iterator[Batch]:
        """Yield the batches; in a job also record the seconds of its steps by part.

        `done` is the steps of earlier attempts.
        """
        try:
            instrumentation = importlib.import_module("smoke_training.instrumentation")
        except ImportError:  # not in a job
            yield from batches
            return
        with instrumentation.instrument(
            model,
            optimizer,
            batches,
            every=every,
            on_record=lambda record: self.record(done + record["step"], instrumentation.metrics(record)),
        ) as run:
            yield from run.batches()
