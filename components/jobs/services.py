"""The services on which a gate can run, by the name in its arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from infra.jobs.service import JobService
from infra.launchers.gcp.vertex import VERTEX_CODE
from infra.launchers.runplan import SageMakerOptions, SlurmOptions, VertexOptions
from smoke_training.verdict_record import LIMIT_VARIABLE


@dataclass(frozen=True)
class GateService:
    """The parts of a gate that depend on its service."""

    connect: Callable[[str, str, str, str], JobService]
    """From account, region, stack and kubeconfig, which is empty where jobs do not run in a cluster. Raises
    UserError without a login."""
    part: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """The field of a run plan for this service, by its name."""
    code_folder: str
    """Folder of the container with code and plan."""
    termination: Mapping[str, str]
    """Environment variables for the message of a job that failed."""
    work_root: str = "/tmp/smoke"  # noqa: S108 - the container's own disk
    """Folder of results and checkpoints."""


def _sagemaker(_account: str, region: str, stack: str, _kubeconfig: str) -> JobService:
    from infra.clouds.aws.login import clients  # noqa: PLC0415 - an SDK of one cloud
    from infra.jobs.aws.service import SageMakerService  # noqa: PLC0415

    return SageMakerService(clients(), stack, region)


def _vertex(account: str, region: str, stack: str, _kubeconfig: str) -> JobService:
    from infra.jobs.gcp.service import VertexService  # noqa: PLC0415 - of one cloud

    return VertexService(account, region, stack)


def _pcs(_account: str, region: str, stack: str, _kubeconfig: str) -> JobService:
    from infra.clouds.aws.login import clients  # noqa: PLC0415 - an SDK of one cloud
    from infra.jobs.aws.pcs import PcsService  # noqa: PLC0415

    return PcsService(clients(), stack, region)


def _director(account: str, _region: str, stack: str, _kubeconfig: str) -> JobService:
    from infra.jobs.gcp.director import DirectorService  # noqa: PLC0415 - of one cloud

    return DirectorService(account, stack)


def _slinky(_account: str, region: str, stack: str, kubeconfig: str) -> JobService:
    from infra.clouds.aws.login import clients  # noqa: PLC0415 - an SDK of one cloud
    from infra.jobs.aws.slinky import SlinkyService  # noqa: PLC0415

    return SlinkyService(clients(), stack, region, kubeconfig)


def _of_slurm(connect: Callable[[str, str, str, str], JobService]) -> GateService:
    """Folders are relative to that of the job, on the shared file system of the homes."""
    return GateService(
        connect=connect,
        part=lambda place: {"slurm": SlurmOptions(**place)},
        code_folder="code",
        termination={},
        work_root="results",
    )


SERVICES: Mapping[str, GateService] = {
    "sagemaker": GateService(
        connect=_sagemaker,
        part=lambda place: {"sagemaker": SageMakerOptions(**place)},
        # Of the channel `code` (developer guide, "Amazon SageMaker AI Training Storage Folders for Training
        # Datasets, Checkpoints, Model Artifacts, and Outputs").
        code_folder="/opt/ml/input/data/code",
        # FailureReason of a job (developer guide, "How Amazon SageMaker AI Signals Algorithm Success and
        # Failure"): 1024 characters, with text of the service around those of the file.
        termination={"TERMINATION_MESSAGE_PATH": "/opt/ml/output/failure", LIMIT_VARIABLE: "900"},
    ),
    # Vertex AI reads no such file: the reason is in the log and in the result, which the provider reads.
    "vertex": GateService(
        connect=_vertex,
        part=lambda place: {"vertex": VertexOptions(**place)},
        code_folder=VERTEX_CODE,
        termination={},
    ),
    "pcs": _of_slurm(_pcs),
    "director": _of_slurm(_director),
    "slinky": _of_slurm(_slinky),
}
