"""Rank and hosts of a node in its job, from the service's own document or variable."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoke_training.job.folders import CLUSTER_SPEC, Folders
from smoke_training.reader import UNFIT, DocumentError, parsed

PATIENCE_S = 120.0  # SageMaker may write its document after the container has started
POLL_S = 0.2


@dataclass(frozen=True, kw_only=True)
class JobNode:
    """Rank of this node. `hosts` has the same order on every node; the first is the rendezvous."""

    hosts: tuple[str, ...]
    index: int
    job: str | None = None
    machine: str | None = None
    interface: str | None = None

    @property
    def first(self) -> str:
        """Host of the rendezvous."""
        return self.hosts[0]

    @property
    def nodes(self) -> int:
        """Number of nodes of the job."""
        return len(self.hosts)


ALONE = JobNode(hosts=("localhost",), index=0)


def find(
    environment: Mapping[str, str], folders: Folders, wait: Callable[[], None] = lambda: time.sleep(POLL_S)
) -> JobNode:
    """Return the rank that the service assigns; a single node without a service.

    DocumentError when the service's document cannot be used, or is not there within `PATIENCE_S`.
    """
    if CLUSTER_SPEC in environment:
        return vertex(environment)
    if "TRAINING_JOB_NAME" not in environment and not folders.resources.exists():
        return ALONE
    deadline = time.monotonic() + PATIENCE_S
    while (document := _written(folders.resources)) is None:
        if time.monotonic() > deadline:
            raise DocumentError([f"{folders.resources}: not there after {PATIENCE_S:.0f} s"])
        wait()
    return sagemaker(document, environment, str(folders.resources))


def _written(path: Path) -> Mapping[str, Any] | None:
    """Return the document, None while it is absent or incomplete."""
    try:
        return parsed(path.read_text(), str(path))
    except (OSError, DocumentError):
        return None


def sagemaker(document: Mapping[str, Any], environment: Mapping[str, str], path: str) -> JobNode:
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
        job=environment.get("TRAINING_JOB_NAME"),
        machine=document.get("current_instance_type"),
        interface=document.get("network_interface_name"),
    )


def vertex(environment: Mapping[str, str]) -> JobNode:
    """Read the variable CLUSTER_SPEC (Vertex AI, "Distributed training"); workerpool0 is first.

    {"cluster": {"workerpool0": ["host:port"], ...}, "task": {"type": "workerpool1", "index": 0}}.
    """
    try:
        spec = json.loads(environment[CLUSTER_SPEC])
        pools, task = spec["cluster"], spec["task"]
        addresses = [address for pool in sorted(pools) for address in pools[pool]]
        own = pools[task["type"]][int(task["index"])]
        return JobNode(
            hosts=tuple(str(address).rsplit(":", 1)[0] for address in addresses),
            index=addresses.index(own),
            job=environment.get("CLOUD_ML_JOB_ID"),
        )
    except UNFIT as error:
        raise DocumentError([f"{CLUSTER_SPEC}: {type(error).__name__}: {error}"]) from error
