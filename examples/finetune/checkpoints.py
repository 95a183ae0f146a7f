"""Atomic checkpoints, and the signal that requests a job to save and exit."""

import os
import pickle
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch

STOPPED = 128 + signal.SIGTERM  # exit code of a stopped run, as in shells


class Checkpoints:
    """The last `keep` checkpoints of a run in one folder, `step-00000100.pt` and so on.

    What is deleted here a managed service deletes from its bucket as well.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self._folder, self._keep = folder, keep

    def save(self, step: int, document: dict[str, Any]) -> None:
        """Write a checkpoint and delete the oldest ones."""
        self.write(self._folder / f"step-{step:08d}.pt", document)
        for old in self._newest()[self._keep :]:
            old.unlink(missing_ok=True)

    @staticmethod
    def write(path: Path, document: dict[str, Any]) -> None:
        """Write a file under another name first, so that a kill leaves no partial file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part")
        with temporary.open("wb") as stream:
            torch.save(document, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)

    def load(self) -> dict[str, Any] | None:
        """Load the newest readable checkpoint, on the CPU; None without one."""
        for path in self._newest():
            try:
                found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                sys.stderr.write(f"{path} cannot be read, an older one is tried: {reason}\n")
            else:
                return found
        return None

    def _newest(self) -> list[Path]:
        return sorted(self._folder.glob("step-*.pt"), reverse=True)


class Stop:
    """True after SIGTERM: 120 s later a managed service ends the job (spot, stop, time limit)."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
