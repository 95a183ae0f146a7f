"""Rank and hosts of a node in a job of Vertex AI, from the variable CLUSTER_SPEC."""

import json
from collections.abc import Mapping

from agents.managed_job.job_node import JobNode
from smoke_training.reader import UNFIT, DocumentError

CLUSTER_SPEC = "CLUSTER_SPEC"  # set in every replica, and only there


def find(environment: Mapping[str, str]) -> JobNode:
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
