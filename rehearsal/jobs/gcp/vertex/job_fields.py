"""Validation of the fields of a custom job.

Source: googleapis/googleapis google/cloud/aiplatform/v1/custom_job.proto, machine_resources.proto, in the
JSON names of the REST API; googleapis/python-aiplatform types/custom_job.py (Scheduling.Strategy).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rehearsal.dataplane.gcp.http import ServiceError

_ANY: Mapping[str, Any] = {}
_MACHINE = dict.fromkeys(("machineType", "acceleratorType", "acceleratorCount", "tpuTopology"))
_CONTAINER = {"imageUri": None, "command": None, "args": None, "env": {"name": None, "value": None}}
_POOL = {
    "machineSpec": {**_MACHINE, "reservationAffinity": _ANY, "gpuPartitionSize": None},
    "replicaCount": None,
    "nfsMounts": _ANY,
    "lustreMounts": _ANY,
    "diskSpec": {"bootDiskType": None, "bootDiskSizeGb": None},
    "containerSpec": _CONTAINER,
    "pythonPackageSpec": _ANY,
}
_SPEC = {
    "persistentResourceId": None,
    "workerPoolSpecs": _POOL,
    "scheduling": dict.fromkeys(
        ("timeout", "restartJobOnWorkerRestart", "strategy", "disableRetries", "maxWaitDuration")
    ),
    "serviceAccount": None,
    "network": None,
    "reservedIpRanges": None,
    "pscInterfaceConfig": _ANY,
    "baseOutputDirectory": {"outputUriPrefix": None},
    "protectedArtifactLocationId": None,
    "tensorboard": None,
    "enableWebAccess": None,
    "enableDashboardAccess": None,
    "experiment": None,
    "experimentRun": None,
    "models": None,
}
_JOB = {"name": None, "displayName": None, "jobSpec": _SPEC, "labels": _ANY, "encryptionSpec": _ANY}
_STRATEGIES = ("ON_DEMAND", "LOW_COST", "STANDARD", "SPOT", "FLEX_START")
_LABEL_KEY, _LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
_LONGEST_NAME, _MOST_VARIABLES = 128, 100
_LONGEST_FLEX_S = 7 * 86400


def check(job: Mapping[str, Any]) -> None:
    """Raise ServiceError for the first violation."""
    # In this order: values are validated once nothing is missing.
    for message in chain(_unknown(job, _JOB, "custom_job"), _missing(job), _wrong(job)):
        raise ServiceError(400, message)


def _unknown(value: Any, known: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _unknown(one, known, f"{path}[{index}]")
    elif isinstance(value, Mapping) and known:
        for name, inner in value.items():
            if name not in known:
                yield (
                    f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
                )
            elif known[name] is not None:
                yield from _unknown(inner, known[name], f"{path}.{_snake(name)}")


def _missing(job: Mapping[str, Any]) -> Iterator[str]:
    if not job.get("displayName"):
        yield "Required field is not set: display_name."
    pools = (job.get("jobSpec") or {}).get("workerPoolSpecs") or []
    if not pools:
        yield "Required field is not set: job_spec.worker_pool_specs."
    for index, pool in enumerate(pools):
        where = f"job_spec.worker_pool_specs[{index}]"
        if not (pool.get("machineSpec") or {}).get("machineType"):
            yield f"Required field is not set: {where}.machine_spec.machine_type."
        if not (pool.get("containerSpec") or {}).get("imageUri") and not pool.get("pythonPackageSpec"):
            yield f"Required field is not set: {where}.container_spec.image_uri."
        if not pool.get("replicaCount"):
            yield f"Required field is not set: {where}.replica_count."


def _wrong(job: Mapping[str, Any]) -> Iterator[str]:
    spec, pools = job["jobSpec"], job["jobSpec"]["workerPoolSpecs"]
    if len(str(job["displayName"])) > _LONGEST_NAME:
        yield f"display_name must have at most {_LONGEST_NAME} characters."
    # The first pool is the one primary replica (documentation, "Create custom jobs").
    if int(pools[0]["replicaCount"]) != 1:
        yield "The first worker pool is that of the primary replica: its replica_count must be 1."
    for pool in pools:
        variables = (pool.get("containerSpec") or {}).get("env") or ()
        if len(variables) > _MOST_VARIABLES:
            yield f"At most {_MOST_VARIABLES} environment variables can be specified."
    scheduling = spec.get("scheduling") or {}
    if scheduling.get("strategy", "STANDARD") not in _STRATEGIES:
        yield f"Invalid value at 'custom_job.job_spec.scheduling.strategy': \"{scheduling['strategy']}\""
    if not re.fullmatch(r"\d+(\.\d+)?s", str(scheduling.get("timeout", "1s"))):
        yield "Invalid value at 'custom_job.job_spec.scheduling.timeout' (TYPE_DURATION)"
    if not re.fullmatch(r"\d+(\.\d+)?s", str(scheduling.get("maxWaitDuration", "1s"))):
        yield "Invalid value at 'custom_job.job_spec.scheduling.max_wait_duration' (TYPE_DURATION)"
    if scheduling.get("strategy") == "FLEX_START":
        yield from _flex_start(scheduling, pools)
    base = (spec.get("baseOutputDirectory") or {}).get("outputUriPrefix", "gs://")
    if not str(base).startswith("gs://"):
        yield f"base_output_directory.output_uri_prefix must be a Cloud Storage URI: {base}"
    for key, value in (job.get("labels") or {}).items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL.fullmatch(str(value)):
            yield f"Label keys and values can only contain lowercase letters, numbers, - and _: {key}={value}"


def _flex_start(scheduling: Mapping[str, Any], pools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Requirements of flex-start (documentation, "Schedule training jobs based on resource availability")."""
    machines = [pool.get("machineSpec") or {} for pool in pools]
    if any(one != machines[0] for one in machines):
        yield "FLEX_START requires the same machine_spec in all worker pools."
    if not machines[0].get("acceleratorType"):
        yield "FLEX_START requires GPUs: worker_pool_specs[0].machine_spec.accelerator_type is not set."
    if "reservationAffinity" in machines[0]:
        yield "FLEX_START cannot be used with a reservation."
    if float(str(scheduling.get("timeout", "1s")).removesuffix("s")) > _LONGEST_FLEX_S:
        yield "FLEX_START requires a timeout of at most 7 days."


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name)
