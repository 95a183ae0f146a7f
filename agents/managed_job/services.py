"""Folders and rank of a node, from the managed training service in whose job it runs."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.managed_job.aws import node as sagemaker
from agents.managed_job.aws.folders import BASE, MOVED, TRIAL, below
from agents.managed_job.folders import Folders
from agents.managed_job.gcp import node as vertex
from agents.managed_job.gcp.folders import BucketFolders, local
from agents.managed_job.job_node import ALONE, JobNode

POLL_S = 0.2


def folders_of(environment: Mapping[str, str], base: Path | None = None) -> Folders:
    """Return the folders below `base`, else the service's, else those below /opt/ml."""
    if base is None and vertex.CLUSTER_SPEC in environment:
        return local()
    return below(base or Path(environment.get(MOVED) or BASE), environment.get(TRIAL, ""))


class CopiedByService:
    """Folders that the service itself copies, as SageMaker does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Nothing is left."""

    def restore(self) -> None:
        """Everything is there."""


def copies_of(
    environment: Mapping[str, str], folders: Folders, say: Callable[[str], None]
) -> BucketFolders | CopiedByService:
    """Return what copies the folders of this job."""
    if vertex.CLUSTER_SPEC in environment:
        return BucketFolders(environment, folders, say)
    return CopiedByService()


def find_node(
    environment: Mapping[str, str], folders: Folders, wait: Callable[[], None] = lambda: time.sleep(POLL_S)
) -> JobNode:
    """Return the rank that the service assigns; a single node without a service.

    DocumentError when the service's document cannot be used, or is absent for too long.
    """
    if vertex.CLUSTER_SPEC in environment:
        return vertex.find(environment)
    if sagemaker.JOB not in environment and not folders.resources.exists():
        return ALONE
    return sagemaker.find(environment, folders, wait)
