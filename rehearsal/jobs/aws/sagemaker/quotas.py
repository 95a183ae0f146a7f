"""Quotas of SageMaker that refuse jobs, searches, domains, profiles, spaces and apps: ResourceLimitExceeded.

A scenario sets them by the name that the service gives them, or by their key in the catalog; without a row
there is no limit. Source of the two messages, for a count in use and for one request alone:
gabehollombe-aws/jupyter-notebooks issue 1 and aws/amazon-sagemaker-examples issue 1564 ("Total domains");
aws/sagemaker-python-sdk issue 4939 ("Size of EBS volume for a processing job instance").
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord

_CODE = "ResourceLimitExceeded"
_ASK = (
    "Please use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not "
    "available, contact AWS support to request an increase for this quota."
)
TRIALS_AT_ONCE = "Maximum number of training jobs each hyper parameter tuning job can run in parallel at once"


def machine_quota(machine: str, *, spot: bool) -> str:
    """The quota of a machine type that a job counts against."""
    return f"{machine} for {'spot ' if spot else ''}training job usage"


def check_job(
    request: Mapping[str, Any],
    running: Iterable[TrainingJobRecord],
    quotas: Mapping[str, float],
    local_storage_gb: int,
) -> None:
    """Raise ServiceError where a training job exceeds a quota."""
    resources = request["ResourceConfig"]
    spot, count = bool(request.get("EnableManagedSpotTraining")), int(resources["InstanceCount"])
    word = "spot " if spot else ""
    longest = int((request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", 86_400))
    check_request(quotas, "Longest run time for a training job", longest, "Seconds")
    if not local_storage_gb:
        volume = int(resources["VolumeSizeInGB"])
        check_request(quotas, "Size of EBS volume for a training job instance", volume, "GBs")
    if resources.get("TrainingPlanArn"):
        return  # uses the machines of its plan
    check_request(quotas, f"Maximum number of instances per {word}training job", count, "Instances")
    of_market = [job for job in running if job.spot == spot]
    machine = str(resources["InstanceType"])
    same = [job for job in of_market if job.request["ResourceConfig"]["InstanceType"] == machine]
    for name, jobs in (
        (machine_quota(machine, spot=spot), same),
        (f"Number of instances across all {word}training jobs", of_market),
    ):
        check_count(quotas, name, sum(job.count for job in jobs), count, "Instances")


def check_request(quotas: Mapping[str, float], name: str, wanted: float, unit: str) -> None:
    """Raise ServiceError where one request is larger than a quota."""
    allowed = _limit(quotas, name)
    if allowed is not None and wanted > allowed:
        raise ServiceError(
            _CODE,
            f"The request delta of {wanted:g} {unit} for '{name}' is greater than the account-level "
            f"service-limit of {allowed:g} {unit}. {_ASK}",
        )


def check_count(quotas: Mapping[str, float], name: str, used: int, wanted: int, unit: str) -> None:
    """Raise ServiceError where a request and what is in use exceed a quota together."""
    allowed = _limit(quotas, name)
    if allowed is not None and used + wanted > allowed:
        raise ServiceError(
            _CODE,
            f"The account-level service limit '{name}' is {allowed:g} {unit}, with current utilization of "
            f"{used} {unit} and a request delta of {wanted} {unit}. {_ASK}",
        )


def _limit(quotas: Mapping[str, float], name: str) -> float | None:
    if name in quotas:
        return quotas[name]
    rows = facts.catalog().quotas
    key = next((key for key, row in rows.items() if row.description == name), None)
    return quotas.get(key) if key else None
