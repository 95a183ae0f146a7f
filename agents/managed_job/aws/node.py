"""Rank and hosts of a node in a job of SageMaker, from resourceconfig.json."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.managed_job.folders import Folders
from agents.managed_job.job_node import JobNode
from smoke_training.reader import DocumentError, parsed

PATIENCE_S = 120.0  # the document may be written after the container has started
JOB = "TRAINING_JOB_NAME"


def find(environment: Mapping[str, str], folders: Folders, wait: Callable[[], None]) -> JobNode:
    """Wait for the document and read it; DocumentError when it is invalid, or absent after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while (document := _written(folders.resources)) is None:
        if time.monotonic() > deadline:
            raise DocumentError([f"{folders.resources}: not there after {PATIENCE_S:.0f} s"])
        wait()
    return _node(document, environment, str(folders.resources))


def _written(path: Path) -> Mapping[str, Any] | None:
    """Return the document, None while it is absent or incomplete."""
    try:
        return parsed(path.read_text(), str(path))
    except (OSError, DocumentError):
        return None


def _node(document: Mapping[str, Any], environment: Mapping[str, str], path: str) -> JobNode:
    """Read resourceconfig.json, whose `hosts` are in no guaranteed order.

    SageMaker developer guide, "How Amazon SageMaker Provides Training Information", "Distributed Training
    Configuration". DocumentError where this host is none of the hosts.
    """
    hosts, own = document.get("hosts"), document.get("current_host")
    if not isinstance(hosts, list) or own not in hosts:
        raise DocumentError([f"{path}: current_host {own!r} is not one of hosts {hosts!r}"])
    ordered = sorted(str(host) for host in hosts)
    return JobNode(
        hosts=tuple(ordered),
        index=ordered.index(str(own)),
        job=environment.get(JOB),
        machine=document.get("current_instance_type"),
        interface=document.get("network_interface_name"),
    )
