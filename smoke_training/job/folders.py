"""The folders that a managed training service gives a job."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BASE = Path("/opt/ml")
MOVED = "SAGEMAKER_BASE_DIR"  # where else they lie, as SageMaker's own training toolkit calls it
NAMES = {  # variables with which a script finds them, whatever the service
    "TRAINSTACK_CHECKPOINTS": "checkpoints",
    "TRAINSTACK_MODEL": "model",
    "TRAINSTACK_OUTPUT": "output",
    "TRAINSTACK_DATA": "data",
}


@dataclass(frozen=True)
class Folders:
    """Below one folder, as SageMaker lays them out.

    Developer guide, "Amazon SageMaker Training Storage Folders for Training Datasets, Checkpoints [...]".
    """

    base: Path

    @classmethod
    def of(cls, environment: Mapping[str, str], base: Path | None = None) -> "Folders":
        """Below `base`, else where the environment says, else below /opt/ml."""
        return cls(base or Path(environment.get(MOVED) or BASE))

    @property
    def resources(self) -> Path:
        """The document in which SageMaker tells a node its place."""
        return self.base / "input" / "config" / "resourceconfig.json"

    @property
    def data(self) -> Path:
        """What the job was given with `--data`; not there without."""
        return self.base / "input" / "data" / "data"

    @property
    def checkpoints(self) -> Path:
        """Kept by the service while the job runs, and there again after an interruption."""
        return self.base / "checkpoints"

    @property
    def model(self) -> Path:
        """What the job makes, kept at its end."""
        return self.base / "model"

    @property
    def output(self) -> Path:
        """What else is kept at the end."""
        return self.base / "output" / "data"

    @property
    def failure(self) -> Path:
        """The file whose first 1024 characters the service shows as the reason of a failure."""
        return self.base / "output" / "failure"

    def variables(self) -> dict[str, str]:
        """The folders for a script, by the names in `NAMES`."""
        return {name: str(getattr(self, folder)) for name, folder in NAMES.items()}
