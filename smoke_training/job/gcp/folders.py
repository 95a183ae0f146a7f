"""Folders of a job of Vertex AI, in mounted buckets."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from smoke_training.job.folders import Folders

BUCKETS = Path("/gcs")  # where Vertex AI mounts the buckets of a project
BUCKETS_MOVED = "TRAINSTACK_GCS"  # overrides BUCKETS where no user may mount there
CHECKPOINTS, DATA = "TRAINSTACK_CHECKPOINT_URI", "TRAINSTACK_DATA_URI"  # gs://...


def in_buckets(environment: Mapping[str, str]) -> Folders:
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
    return Folders(
        data=mounted(DATA, otherwise=local / "data"),
        checkpoints=mounted(CHECKPOINTS, "AIP_CHECKPOINT_DIR", otherwise=local / "checkpoints"),
        model=base / "model",
        output=base / "output",
        failure=base / "failure",  # for users: the service reads none
        scratch=local,  # a mounted bucket does not support a database's random writes
        shared=True,
        resources=base / "resourceconfig.json",
    )
