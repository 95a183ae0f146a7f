"""Journal of a search: one line per finished trial and round."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """The loss of a trial after so many steps; `run_id` is its run in MLflow."""

    trial: int
    steps: int
    loss: float
    run_id: str | None = None


class Journal:
    """A file of lines; one truncated by a kill is ignored, and its trial is run again."""

    def __init__(self, path: Path, about: dict[str, object]) -> None:
        """Open the journal at `path`; ValueError if it belongs to a search with other arguments."""
        self._path = path
        self.entries: list[Entry] = []
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) != about:
            raise ValueError(f"{path}: is of another search, {lines[0]}; give this one a folder of its own")
        for line in lines[1:]:
            try:
                self.entries.append(Entry(**json.loads(line)))
            except ValueError:
                continue
        # Rewritten: the next line must not be appended to a partial one.
        temporary = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text("".join(_line(one) for one in (about, *map(asdict, self.entries))))
        temporary.replace(path)

    def loss(self, trial: int, steps: int) -> float | None:
        """Return the loss of a trial at a step, None if it has not reached it."""
        return next((one.loss for one in self.entries if (one.trial, one.steps) == (trial, steps)), None)

    def run_of(self, trial: int) -> str | None:
        """The run of a trial in MLflow."""
        return next((one.run_id for one in self.entries if one.trial == trial and one.run_id), None)

    def add(self, entry: Entry) -> None:
        """Write a result durably."""
        self.entries.append(entry)
        with self._path.open("a") as stream:
            stream.write(_line(asdict(entry)))
            stream.flush()
            os.fsync(stream.fileno())


def _line(document: dict[str, object]) -> str:
    return json.dumps(document, sort_keys=True) + "\n"
