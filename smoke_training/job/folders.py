"""Folders that a managed training service provides to a job."""

from dataclasses import dataclass, field
from pathlib import Path

BASE = Path("/opt/ml")
TRIAL = "TRAINSTACK_TRIAL"  # trial of a tuning job: all its trials share one folder of checkpoints
MOVED = "SAGEMAKER_BASE_DIR"  # overrides the base folder, as in SageMaker's own training toolkit
NAMES = {  # variables for scripts, the same for every service
    "TRAINSTACK_CHECKPOINTS": "checkpoints",
    "TRAINSTACK_MODEL": "model",
    "TRAINSTACK_OUTPUT": "output",
    "TRAINSTACK_DATA": "data",
}


@dataclass(frozen=True)
class Folders:
    """Folders below one base, in SageMaker's layout.

    Developer guide, "Amazon SageMaker Training Storage Folders for Training Datasets, Checkpoints [...]".
    """

    base: Path
    trial: str = field(default="", kw_only=True)

    @property
    def shared(self) -> bool:
        """True if all nodes of a job share the folders."""
        return False

    @property
    def scratch(self) -> Path:
        """Folder for a database while the job runs."""
        return self.output

    @property
    def resources(self) -> Path:
        """SageMaker's document with a node's rank and hosts."""
        return self.base / "input" / "config" / "resourceconfig.json"

    @property
    def data(self) -> Path:
        """Input data of `--data`; absent without it."""
        return self.base / "input" / "data" / "data"

    @property
    def checkpoints(self) -> Path:
        """Stored by the service during the job and restored after an interruption."""
        return self.base / "checkpoints" / self.trial

    @property
    def model(self) -> Path:
        """The job's model, stored at its end."""
        return self.base / "model"

    @property
    def output(self) -> Path:
        """Other results, stored at the end."""
        return self.base / "output" / "data"

    @property
    def failure(self) -> Path:
        """File whose first 1024 characters the service shows as the reason of a failure."""
        return self.base / "output" / "failure"

    def variables(self) -> dict[str, str]:
        """Return the folders by the variables in `NAMES`."""
        return {name: str(getattr(self, folder)) for name, folder in NAMES.items()}
