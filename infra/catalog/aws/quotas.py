"""What planned resources take of the quotas of an account. A quota without a known value never refuses."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.catalog.aws import facts

NODES, INSTANCE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/instance:Instance"
_MARKETS = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}
# Types of which a region may have a number, and their quotas.
COUNTED: Mapping[str, str] = {
    "aws:ec2/vpc:Vpc": "vpcs",
    "aws:ec2/internetGateway:InternetGateway": "internet_gateways",
    "aws:ec2/eip:Eip": "elastic_ips",
    "aws:ec2/securityGroup:SecurityGroup": "security_groups",
}
_FAMILIES = {"p": "p", "g": "g", "vt": "g"}
_STANDARD = frozenset("acdhimrtz")


@dataclass(frozen=True)
class Planned:
    """A resource that exists or is to be created: its type, name and inputs."""

    type: str
    name: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class Shortfall:
    """More is wanted than the account may have."""

    key: str
    description: str
    limit: float
    wanted: float
    unit: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.names[:4]) + (" ..." if len(self.names) > 4 else "")
        return f"{self.description}: {self.wanted:g} {self.unit} wanted, {self.limit:g} allowed ({names})"


def limits(overrides: Mapping[str, float]) -> dict[str, float]:
    """Quota key -> value: the default quotas under those of a scenario; unknown ones are absent."""
    known = {key: row.value for key, row in facts.quotas.items() if row.value is not None}
    return {**known, **overrides}


def shortfalls(planned: Iterable[Planned], overrides: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of a region that `planned` exceeds, all at once, worst first."""
    wanted: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    for one in planned:
        for key, amount in demands(one.type, one.inputs):
            wanted[key] = wanted.get(key, 0.0) + amount
            names.setdefault(key, []).append(one.name)
    rows, allowed = facts.quotas, limits(overrides)
    found = [
        Shortfall(key, rows[key].description, allowed[key], amount, rows[key].unit, tuple(names[key]))
        for key, amount in wanted.items()
        if key in allowed and amount > allowed[key]
    ]
    return sorted(found, key=lambda one: one.limit / one.wanted)


def demands(token: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(quota key, amount) that a resource takes; machines of which the size is unknown take nothing."""
    if token in COUNTED:
        yield COUNTED[token], 1.0
    for machine, market, count in machines(token, inputs):
        row = facts.instance_types.get(machine)
        key = _vcpu_key(machine, market)
        if row is not None and key is not None and count:
            yield key, float(row.vcpu * count)


def machines(token: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """(machine type, market, how many) that a resource starts at once; of several types the first."""
    if token == INSTANCE and isinstance(inputs.get("instanceType"), str):
        yield inputs["instanceType"], "on_demand", 1
    scaling, types = inputs.get("scalingConfig"), inputs.get("instanceTypes")
    if token == NODES and isinstance(scaling, dict) and isinstance(types, list) and types:
        count = scaling.get("desiredSize")
        if isinstance(types[0], str) and isinstance(count, (int, float)):
            yield types[0], _MARKETS.get(str(inputs.get("capacityType")), "on_demand"), int(count)


def _vcpu_key(machine: str, market: str) -> str | None:
    letters = re.match(r"[a-z]+", machine)
    family = letters.group() if letters else ""
    if market == "capacity_block":
        return None  # what is reserved does not count against the quota of running instances
    if family in _FAMILIES:
        return f"ec2_{market}_{_FAMILIES[family]}"
    return "ec2_on_demand_standard" if family in _STANDARD and market == "on_demand" else None
