"""Folders of a job of Vertex AI, in mounted buckets."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from smoke_training.job.folders import Folders

BUCKETS = Path("/gcs")  # where Vertex AI mounts the buckets of a project
BUCKETS_MOVED = "TRAINSTACK_GCS"  # overrides BUCKETS where no user may mount there
CHECKPOINTS, DATA = "TRAINSTACK_CHECKPOINT_URI", "TRAINSTACK_DATA_URI"  # gs://...


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
