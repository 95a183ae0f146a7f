"""Folders that a managed training service provides to a job."""

from dataclasses import dataclass
from pathlib import Path

NAMES = {  # variables for scripts, the same for every service
    "TRAINSTACK_CHECKPOINTS": "checkpoints",
    "TRAINSTACK_MODEL": "model",
    "TRAINSTACK_OUTPUT": "output",
    "TRAINSTACK_DATA": "data",
}


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Folders and files of a job."""

    data: Path  # input data of `--data`; absent without it
    checkpoints: Path  # stored during the job and restored after an interruption
    model: Path  # the job's model, stored at its end
    output: Path  # other results, stored at the end
    failure: Path  # file with the reason of a failure
    scratch: Path  # for a database while the job runs
    shared: bool  # the same folders on all nodes of the job
    resources: Path  # SageMaker's document with a node's rank and hosts

    def variables(self) -> dict[str, str]:
        """Return the folders by the variables in `NAMES`."""
        return {name: str(getattr(self, folder)) for name, folder in NAMES.items()}
