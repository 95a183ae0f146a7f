"""Demand of resources for the quotas of an account. A quota without a known value is never exceeded."""

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.catalog.aws import facts
from infra.catalog.aws.model import ServiceQuota
from infra.catalog.demand import Demand, by_quota

NODES, INSTANCE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/instance:Instance"
_MARKETS = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}
# Types with a quota on their number per region.
COUNTED: Mapping[str, str] = {
    "aws:ec2/vpc:Vpc": "vpcs",
    "aws:ec2/internetGateway:InternetGateway": "internet_gateways",
    "aws:ec2/eip:Eip": "elastic_ips",
    "aws:ec2/securityGroup:SecurityGroup": "security_groups",
    "aws:eks/cluster:Cluster": "eks_clusters",
    "aws:efs/fileSystem:FileSystem": "efs_file_systems",
    "aws:rds/cluster:Cluster": "db_clusters",
    "aws:rds/clusterInstance:ClusterInstance": "db_instances",
    "aws:lb/loadBalancer:LoadBalancer": "load_balancers",
    "aws:sagemaker/domain:Domain": "sagemaker_domains",
    "aws:sagemaker/userProfile:UserProfile": "sagemaker_user_profiles",
}
_FAMILIES = {"p": "p", "g": "g", "vt": "g"}
_STANDARD = frozenset("acdhimrtz")
_SAGEMAKER = "sagemaker"


def row_of(key: str) -> ServiceQuota:
    """The quota of a key; one of a machine type of SageMaker is its own name, as there are thousands.

    Source of the names: public listings of the service `sagemaker`, such as "ml.g6.xlarge for training job
    usage" and "Studio JupyterLab Apps running on ml.t3.medium instances".
    """
    return facts.quotas.get(key) or ServiceQuota(
        key=key,
        service=_SAGEMAKER,
        description=key,
        unit="app" if key.startswith("Studio") else "instance",
        error="ResourceLimitExceeded",
        source="names of quotas in public listings of the service sagemaker",
        date=datetime.date(2026, 9, 10),
    )


def key_of(name: str) -> str:
    """The key of a quota of SageMaker by its name."""
    rows = facts.quotas.items()
    return next((key for key, row in rows if (row.service, row.description) == (_SAGEMAKER, name)), name)


@dataclass(frozen=True)
class PlannedResource:
    """A resource that exists or is to be created: its type, name and inputs."""

    type: str
    name: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class Shortfall:
    """Demand that exceeds a quota of the account."""

    key: str
    description: str
    limit: float
    wanted: float
    unit: str
    names: tuple[str, ...]

    def words(self, delta: float | None = None) -> str:
        """The error of the service: its code and its message. `delta` is what one request adds; None: all.

        Source for SageMaker: the issues that `rehearsal.jobs.aws.sagemaker.quotas` names.
        """
        row = row_of(self.key)
        asked = self.wanted if delta is None else delta
        unit = f"{self.unit.title()}s"
        if row.service == _SAGEMAKER and row.each:
            message = (
                f"The request delta of {asked:g} {unit} for '{self.description}' is greater than the "
                f"account-level service-limit of {self.limit:g} {unit}."
            )
        elif row.service == _SAGEMAKER:
            message = (
                f"The account-level service limit '{self.description}' is {self.limit:g} {unit}, with "
                f"current utilization of {self.wanted - asked:g} {unit} and a request delta of {asked:g} "
                f"{unit}."
            )
        elif self.unit == "vCPU" and "Spot" not in self.description:
            message = (
                f"You have requested more vCPU capacity than your current vCPU limit of {self.limit:g} "
                "allows for the instance bucket that the specified instance type belongs to."
            )
        elif self.unit == "vCPU":
            message = "Max spot instance count exceeded"
        else:
            message = f"The maximum number of {self.unit}s has been reached."
        return f"{row.error or 'LimitExceeded'}: {message}"

    def __str__(self) -> str:
        names = ", ".join(self.names[:4]) + (" ..." if len(self.names) > 4 else "")
        return f"{self.description}: {self.wanted:g} {self.unit} wanted, {self.limit:g} allowed ({names})"


def limits(overrides: Mapping[str, float]) -> dict[str, float]:
    """Quota key -> value: the default quotas under those of a scenario; unknown ones are absent."""
    known = {key: row.value for key, row in facts.quotas.items() if row.value is not None}
    return {**known, **overrides}


def shortfalls(planned: Iterable[PlannedResource], overrides: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of a region that `planned` exceeds, all at once, worst first."""
    taken = (
        Demand(key, amount, one.name) for one in planned for key, amount in demands(one.type, one.inputs)
    )
    return exceeded(taken, limits(overrides))


def exceeded(wanted: Iterable[Demand], allowed: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of `allowed` that the sum of its demands exceeds, worst first."""
    found = []
    for key, taken in by_quota(wanted).items():
        row, amount = row_of(key), sum(one.amount for one in taken)
        if amount > allowed.get(key, amount):
            names = tuple(one.name for one in taken)
            found.append(Shortfall(key, row.description, allowed[key], amount, row.unit, names))
    return sorted(found, key=lambda one: one.limit / one.wanted)


def request(key: str, value: float, region: str, code: str | None = None) -> str:
    """The command that requests a quota of `value`, rounded up; it looks up a code that is not known."""
    row = row_of(key)
    found = row.quota_code or code
    if found is None:
        found = (
            f"$(aws service-quotas list-aws-default-service-quotas --service-code {row.service} "
            f"--region {region} --query \"Quotas[?QuotaName=='{row.description}'].QuotaCode\" --output text)"
        )
    return (
        f"aws service-quotas request-service-quota-increase --service-code {row.service} "
        f"--quota-code {found} --desired-value {math.ceil(value)} --region {region}"
    )


def demands(token: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(quota key, amount) that a resource takes; machines of unknown size take nothing."""
    if token in COUNTED:
        yield COUNTED[token], 1.0
    for machine, market, count in machines(token, inputs):
        row = facts.instance_types.get(machine)
        key = vcpu_key(machine, market)
        if row is not None and key is not None and count:
            yield key, float(row.vcpu * count)


def machines(token: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """(machine type, market, count) that a resource starts at once; of several types the first."""
    if token == INSTANCE and isinstance(inputs.get("instanceType"), str):
        yield inputs["instanceType"], "on_demand", 1
    scaling, types = inputs.get("scalingConfig"), inputs.get("instanceTypes")
    if token == NODES and isinstance(scaling, dict) and isinstance(types, list) and types:
        count = scaling.get("desiredSize")
        if isinstance(types[0], str) and isinstance(count, (int, float)):
            yield types[0], _MARKETS.get(str(inputs.get("capacityType")), "on_demand"), int(count)


def vcpu_key(machine: str, market: str) -> str | None:
    """The quota that a running machine of a market counts against; None if unknown."""
    letters = re.match(r"[a-z]+", machine)
    family = letters.group() if letters else ""
    if market == "capacity_block":
        return None  # reserved capacity does not count against the quota of running instances
    if market == "spot" and re.match(r"p[56]", machine):
        return f"ec2_spot_{machine[:2]}"
    if family in _FAMILIES:
        return f"ec2_{market}_{_FAMILIES[family]}"
    return f"ec2_{market}_standard" if family in _STANDARD else None
