"""Service quotas and machine capacity of the emulated account: what the catalogue or a scenario says.

A quota without a known value never refuses. Of machines there are always enough, but for the rows that a
scenario gives: then spot and on-demand requests can fail, and fall back to another zone, type or market.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.aws import facts
from rehearsal.core import refusals
from rehearsal.core.model import Properties, RefusalError

NODES, INSTANCE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/instance:Instance"
_MARKETS = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}
# Type -> quota key of the catalogue, and the code with which the service refuses one too many.
COUNTED: Mapping[str, tuple[str, str]] = {
    "aws:ec2/vpc:Vpc": ("vpcs", "VpcLimitExceeded"),
    "aws:ec2/internetGateway:InternetGateway": ("internet_gateways", "InternetGatewayLimitExceeded"),
    "aws:ec2/eip:Eip": ("elastic_ips", "AddressLimitExceeded"),
    "aws:ec2/securityGroup:SecurityGroup": ("security_groups", "SecurityGroupLimitExceeded"),
}
_FAMILIES = {"p": "p", "g": "g", "vt": "g"}
_STANDARD = frozenset("acdhimrtz")


@dataclass(frozen=True)
class Planned:
    """A resource that exists or is to be created: its type, name and inputs."""

    type: str
    name: str
    inputs: Properties


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
        who = ", ".join(self.names[:4]) + (" ..." if len(self.names) > 4 else "")
        return f"{self.description}: {self.wanted:g} {self.unit} wanted, {self.limit:g} allowed ({who})"


def limits(overrides: Mapping[str, float]) -> dict[str, float]:
    """Quota key -> value: the catalogue's defaults under those of a scenario; unknown ones are absent."""
    known = {key: row.value for key, row in facts.catalog().quotas.items() if row.value is not None}
    return {**known, **overrides}


def shortfalls(planned: Iterable[Planned], overrides: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of a region that `planned` exceeds, all at once, worst first."""
    wanted: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    for one in planned:
        for key, amount in demands(one.type, one.inputs):
            wanted[key] = wanted.get(key, 0.0) + amount
            names.setdefault(key, []).append(one.name)
    rows, allowed = facts.catalog().quotas, limits(overrides)
    found = [
        Shortfall(key, rows[key].description, allowed[key], amount, rows[key].unit, tuple(names[key]))
        for key, amount in wanted.items()
        if key in allowed and amount > allowed[key]
    ]
    return sorted(found, key=lambda one: one.limit / one.wanted)


def demands(token: str, inputs: Properties) -> Iterator[tuple[str, float]]:
    """(quota key, amount) that a resource takes; machines of which the size is unknown take nothing."""
    if token in COUNTED:
        yield COUNTED[token][0], 1.0
    for machine, market, count in _machines(token, inputs):
        row = facts.catalog().instance_types.get(machine)
        key = _vcpu_key(machine, market)
        if row is not None and key is not None and count:
            yield key, float(row.vcpu * count)


def _machines(token: str, inputs: Properties) -> Iterator[tuple[str, str, int]]:
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


class Account:
    """What a scenario (`faults.json`) says of the account's quotas and of the machines left in zones."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refuse(
        self, token: str, name: str, inputs: Properties, zones: list[str], rest: list[Planned]
    ) -> None:
        """Raise RefusalError where the service would; `rest` is what exists in the region."""
        scenario = self._scenario()
        me = Planned(token, name, inputs)
        mine = dict(demands(token, inputs))
        if mine:
            for short in shortfalls([*rest, me], scenario.get("quotas", {})):
                if short.key in mine:
                    raise _exceeded(token, short)
        rows = scenario.get("capacity", [])
        for machine, market, count in _machines(token, inputs) if rows else ():
            types = inputs.get("instanceTypes") or [machine]
            if not any(_left(rows, one, market, zones) >= count for one in types):
                zone = zones[0] if len(zones) == 1 else ", ".join(zones)
                raise refusals.no_capacity(token, name, machine, zone, market)

    def _scenario(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return {}


def _left(rows: list[dict[str, Any]], machine: str, market: str, zones: list[str]) -> float:
    """How many machines the zones have together; infinite where no row says otherwise."""
    total = 0.0
    for zone in zones or ["*"]:
        fitting = [
            row["instances"]
            for row in rows
            if row["instance_type"] == machine
            and row.get("zone", "*") in ("*", zone)
            and row.get("market", "*") in ("*", market)
        ]
        total += min(fitting, default=float("inf"))
    return total


def _exceeded(token: str, short: Shortfall) -> RefusalError:
    fix = f"Ask for a higher quota ({short.description}), or for less: {short}."
    if token in COUNTED:
        code = COUNTED[token][1]
        return RefusalError(code, f"The maximum number of {short.unit}s has been reached.", fix)
    return RefusalError(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {short.limit:g} allows for "
        "the instance bucket that the specified instance type belongs to.",
        fix,
    )
