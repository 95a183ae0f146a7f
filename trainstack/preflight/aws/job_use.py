"""The present use of SageMaker's quotas by others: jobs, warm pools, domains, spaces and apps."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from infra.catalog.aws.jobs import app_quota_name, quota_name
from trainstack.preflight.aws.account import Account

_SERVICE = "sagemaker"
_LISTED: Mapping[str, tuple[str, str]] = {
    "sagemaker_user_profiles": ("list_user_profiles", "UserProfiles"),
    "sagemaker_spaces": ("list_spaces", "Spaces"),
}
# A job that stops has its machines still. Those of warm pools count, too (developer guide,
# train-warm-pools-resource-limits: "counts toward your SageMaker training resource limit").
_HOLDING = (
    *({"StatusEquals": "InProgress"}, {"StatusEquals": "Stopping"}),
    {"WarmPoolStatusEquals": "Available"},
)
_RUNNING = ("Pending", "InService")


class JobUse:
    """The use of each quota; data that several quotas need is requested once."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def of(self, key: str) -> float:
        """The use, in the unit of the quota. Raises ClientError."""
        if key == "sagemaker_domains":
            return float(sum(one["DomainName"] != self._account.spec.name for one in self._domains))
        if key == "sagemaker_space_gb":
            return float(sum(map(_disk_gb, self._others("sagemaker_spaces"))))
        if key in _LISTED:
            return float(len(self._others(key)))
        if key == "sagemaker_apps":
            return float(self._apps.total())
        return float(self._apps[key] if key.startswith("Studio") else self._machines[key])

    @cached_property
    def _domains(self) -> list[Mapping[str, Any]]:
        return list(self._account.pages(_SERVICE, "list_domains", "Domains"))

    def _others(self, key: str) -> list[Mapping[str, Any]]:
        operation, member = _LISTED[key]
        return [row for row in self._account.pages(_SERVICE, operation, member) if self._is_other(row)]

    def _is_other(self, row: Mapping[str, Any]) -> bool:
        own = {one["DomainId"] for one in self._domains if one["DomainName"] == self._account.spec.name}
        return row.get("DomainId") not in own

    @cached_property
    def _apps(self) -> Counter[str]:
        """Apps of others by quota."""
        found: Counter[str] = Counter()
        for row in self._account.pages(_SERVICE, "list_apps", "Apps"):
            if row["Status"] in _RUNNING and self._is_other(row):
                kind, machine = row["AppType"], row.get("ResourceSpec", {}).get("InstanceType", "system")
                found[app_quota_name(machine, kind)] += 1
        return found

    @cached_property
    def _machines(self) -> Counter[str]:
        """Machines of others' jobs by quota, of their type and of all."""
        found: Counter[str] = Counter()
        for name in dict.fromkeys(self._holding()):
            job = self._account.client(_SERVICE).describe_training_job(TrainingJobName=name)
            asked, spot = job["ResourceConfig"], job.get("EnableManagedSpotTraining", False)
            if asked.get("TrainingPlanArn") or self._is_own(job["TrainingJobArn"]):
                continue
            for machine, count in _machines(asked):
                found[quota_name(machine, "spot" if spot else "on_demand")] += count
                found[f"sagemaker_{'spot_' if spot else ''}training_instances"] += count
        return found

    def _holding(self) -> Iterator[str]:
        for asked in _HOLDING:
            rows = self._account.pages(_SERVICE, "list_training_jobs", "TrainingJobSummaries", **asked)
            yield from (row["TrainingJobName"] for row in rows)

    def _is_own(self, arn: str) -> bool:
        return self._account.owns(list(self._account.pages(_SERVICE, "list_tags", "Tags", ResourceArn=arn)))


def _machines(asked: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    groups = asked.get("InstanceGroups") or [asked]
    yield from ((one["InstanceType"], one["InstanceCount"]) for one in groups if one.get("InstanceType"))


def _disk_gb(space: Mapping[str, Any]) -> float:
    settings = space.get("SpaceSettingsSummary", {}).get("SpaceStorageSettings", {})
    return float(settings.get("EbsStorageSettings", {}).get("EbsVolumeSizeInGb", 0))
