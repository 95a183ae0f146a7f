"""Folders and rank of a node, from the managed training service in whose job it runs."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from smoke_training.job.aws import node as sagemaker
from smoke_training.job.aws.folders import BASE, MOVED, TRIAL, below
from smoke_training.job.folders import Folders
from smoke_training.job.gcp import node as vertex
from smoke_training.job.gcp.folders import in_buckets
from smoke_training.job.job_node import ALONE, JobNode

POLL_S = 0.2


def folders_of(environment: Mapping[str, str], base: Path | None = None) -> Folders:
    """Return the folders below `base`, else the service's, else those below /opt/ml."""
    if base is None and vertex.CLUSTER_SPEC in environment:
        return in_buckets(environment)
    return below(base or Path(environment.get(MOVED) or BASE), environment.get(TRIAL, ""))


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
