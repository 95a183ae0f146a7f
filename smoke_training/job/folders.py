"""Folders that a managed training service provides to a job."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path("/opt/ml")
BUCKETS = Path("/gcs")  # where Vertex AI mounts the buckets of a project
BUCKETS_MOVED = "TRAINSTACK_GCS"  # overrides BUCKETS where no user may mount there
CHECKPOINTS, DATA = "TRAINSTACK_CHECKPOINT_URI", "TRAINSTACK_DATA_URI"  # gs://..., in jobs of Vertex AI
CLUSTER_SPEC = "CLUSTER_SPEC"  # set in every replica of a job of Vertex AI, and only there
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

    @classmethod
    def of(cls, environment: Mapping[str, str], base: Path | None = None) -> "Folders":
        """Return the folders below `base`, else the service's, else those below /opt/ml."""
        if base is None and CLUSTER_SPEC in environment:
            return in_buckets(environment)
        return cls(base or Path(environment.get(MOVED) or BASE), trial=environment.get(TRIAL, ""))

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


@dataclass(frozen=True)
class BucketFolders(Folders):
    """Folders in mounted buckets; `base` is the job's own folder in one of them."""

    kept: Path
    """Of checkpoints."""
    given: Path
    """Input data; absent without it."""
    local: Path

    @property
    def shared(self) -> bool:
        """See `Folders`."""
        return True

    @property
    def scratch(self) -> Path:
        """On the disk: a mounted bucket does not support a database's random writes."""
        return self.local

    @property
    def data(self) -> Path:
        """See `Folders`."""
        return self.given

    @property
    def checkpoints(self) -> Path:
        """Stored as soon as it is written and available after an interruption."""
        return self.kept

    @property
    def output(self) -> Path:
        """See `Folders`."""
        return self.base / "output"

    @property
    def failure(self) -> Path:
        """File with the reason of a failure, for users: the service reads none."""
        return self.base / "failure"


def in_buckets(environment: Mapping[str, str]) -> BucketFolders:
    """Return the folders of a job of Vertex AI; on its own disk without a base directory.

    Vertex AI documentation, "Environment variables for special Cloud Storage directories" (AIP_*: there only
    with baseOutputDirectory) and "Prepare training code" (/gcs).
    """
    local = Path(tempfile.gettempdir()) / "trainstack" / "job"
    buckets = Path(environment.get(BUCKETS_MOVED) or BUCKETS)

    def mounted(*names: str, otherwise: Path) -> Path:
        uri = next((environment[name] for name in names if environment.get(name)), "")
        return buckets / uri.removeprefix("gs://").strip("/") if uri else otherwise

    base = mounted("AIP_MODEL_DIR", otherwise=local / "model").parent
    return BucketFolders(
        base=base,
        kept=mounted(CHECKPOINTS, "AIP_CHECKPOINT_DIR", otherwise=local / "checkpoints"),
        given=mounted(DATA, otherwise=local / "data"),
        local=local,
    )
