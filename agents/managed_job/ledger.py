"""State of a run across interruptions: attempts and MLflow run id, stored beside its checkpoints."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from smoke_training import files
from smoke_training.reader import UNFIT, decode, parsed

NAME = "trainstack-run.json"
FINISHED = "FINISHED"


@dataclass
class Attempt:
    """From a container's start to its end, in seconds since 1970; `status` in the terms of MLflow."""

    began: float
    seen: float
    status: str | None = None


@dataclass
class AttemptLedger:
    """All attempts of a run; the current one is the last.

    A killed attempt records no end; `seen` is its last heartbeat.
    """

    path: Path
    mlflow_run_id: str | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "AttemptLedger":
        """Read it from a folder of checkpoints, empty at first; ValueError if it is unreadable."""
        path = folder / NAME
        if not path.exists():
            return cls(path)
        try:
            document = parsed(path.read_text(), str(path))
            attempts = [decode(Attempt, attempt) for attempt in document["attempts"]]
            known = document["mlflow_run_id"]
            return cls(path, None if known is None else str(known), attempts)
        except (OSError, *UNFIT) as error:
            raise ValueError(f"{path}: {error}") from error

    @property
    def interruptions(self) -> int:
        """Attempts before this one that did not finish."""
        return sum(1 for attempt in self.attempts[:-1] if attempt.status != FINISHED)

    @property
    def seconds(self) -> float:
        """Seconds of all attempts together."""
        return sum(attempt.seen - attempt.began for attempt in self.attempts)

    def begin(self, now: float) -> None:
        """Begin an attempt."""
        self.attempts.append(Attempt(now, now))
        self._write()

    def see(self, now: float, status: str | None = None) -> None:
        """Record a heartbeat, or the end with `status`. Raises OSError."""
        self.attempts[-1].seen, self.attempts[-1].status = max(now, self.attempts[-1].began), status
        self._write()

    def _write(self) -> None:
        document = {"mlflow_run_id": self.mlflow_run_id, "attempts": [asdict(one) for one in self.attempts]}
        files.write_durably(self.path, (json.dumps(document, indent=1) + "\n").encode())
