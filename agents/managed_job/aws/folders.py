"""Folders of a job of SageMaker, below one base."""

from pathlib import Path

from agents.managed_job.folders import Folders

BASE = Path("/opt/ml")
MOVED = "SAGEMAKER_BASE_DIR"  # overrides the base folder, as in SageMaker's own training toolkit
TRIAL = "TRAINSTACK_TRIAL"  # trial of a tuning job: all its trials share one folder of checkpoints


def below(base: Path, trial: str = "") -> Folders:
    """Return the folders below a base.

    Developer guide, "Amazon SageMaker Training Storage Folders for Training Datasets, Checkpoints [...]". The
    service shows the first 1024 characters of the file `failure`.
    """
    return Folders(
        data=base / "input" / "data" / "data",
        checkpoints=base / "checkpoints" / trial,
        model=base / "model",
        output=base / "output" / "data",
        failure=base / "output" / "failure",
        scratch=base / "output" / "data",
        shared=False,
        resources=base / "input" / "config" / "resourceconfig.json",
    )
