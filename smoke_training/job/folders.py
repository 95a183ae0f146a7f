"""The folders that a managed training service gives a job."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path("/opt/ml")
BUCKETS = Path("/gcs")  # where Vertex AI mounts the buckets of a project
BUCKETS_MOVED = "TRAINSTACK_GCS"  # where else they are: no user of this machine can mount anything there
CHECKPOINTS, DATA = "TRAINSTACK_CHECKPOINT_URI", "TRAINSTACK_DATA_URI"  # gs://..., of jobs of Vertex AI
CLUSTER_SPEC = "CLUSTER_SPEC"  # which every replica of a job of Vertex AI has, and nothing else
TRIAL = "TRAINSTACK_TRIAL"  # which one of a tuning job: all its trials have one folder of checkpoints
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
    trial: str = field(default="", kw_only=True)

    @classmethod
    def of(cls, environment: Mapping[str, str], base: Path | None = None) -> "Folders":
        """Below `base`, else as the service of the environment has them, else below /opt/ml."""
        if base is None and CLUSTER_SPEC in environment:
            return in_buckets(environment)
        return cls(base or Path(environment.get(MOVED) or BASE), trial=environment.get(TRIAL, ""))

    @property
    def shared(self) -> bool:
        """Whether all nodes of a job have the same ones."""
        return False

    @property
    def scratch(self) -> Path:
        """Where a database may lie while the job runs."""
        return self.output

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
        return self.base / "checkpoints" / self.trial

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


@dataclass(frozen=True)
class BucketFolders(Folders):
    """In buckets, which are mounted; `base` is the job's own folder in one of them."""

    kept: Path
    """Of checkpoints."""
    given: Path
    """What the job was given; not there without."""
    local: Path

    @property
    def shared(self) -> bool:
        """See `Folders`."""
        return True

    @property
    def scratch(self) -> Path:
        """On the disk: a bucket is no file system for a database, whose pages are written one by one."""
        return self.local

    @property
    def data(self) -> Path:
        """See `Folders`."""
        return self.given

    @property
    def checkpoints(self) -> Path:
        """Kept as soon as it is written, and there again after an interruption."""
        return self.kept

    @property
    def output(self) -> Path:
        """See `Folders`."""
        return self.base / "output"

    @property
    def failure(self) -> Path:
        """The file in which whoever looks for the reason of a failure finds it: the service reads none."""
        return self.base / "failure"


def in_buckets(environment: Mapping[str, str]) -> BucketFolders:
    """The folders of a job of Vertex AI; on its own disk where it has no base directory.

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
