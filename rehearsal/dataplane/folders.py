"""Local folders with the data of emulated buckets, databases and MLflow servers."""

import shutil
from pathlib import Path


def bucket(home: Path, name: str, scheme: str = "s3") -> Path:
    """The objects of a bucket, a file each; `scheme` is that of its URIs, such as `gs`."""
    return home / scheme / name


def denied(home: Path, name: str, scheme: str) -> Path:
    """A file in place of a bucket's folder for a pod without rights, so that every use fails.

    Its name gives the reason, because error messages of the system contain it.
    """
    file = home / "denied" / f"403-no-permission-storage.objects-on-{scheme}-{name}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def database(home: Path, identifier: str) -> Path:
    """The databases of a cluster, a file each."""
    return home / "databases" / identifier


def runs(home: Path, arn: str) -> Path:
    """Runs of the managed MLflow server with this ARN."""
    return home / "mlflow" / arn.rpartition("/")[2]


def first_file(folder: Path) -> str | None:
    """One of the files at any depth, by its path below the folder; None when there is none."""
    return next((str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()), None)


def remove(folder: Path) -> None:
    """Remove a folder with its content, if present."""
    shutil.rmtree(folder, ignore_errors=True)
