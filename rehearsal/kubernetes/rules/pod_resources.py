"""Resource requests of an object's pods, with the defaults of the namespace's LimitRanges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rehearsal.kubernetes.rules.accessors import Object, PodView, amount, at, mapping, rows

Amounts = Mapping[str, Decimal]


@dataclass(frozen=True)
class ContainerResources:
    """The requests and limits of one container, or of a whole pod."""

    name: str
    requests: dict[str, Decimal] = field(default_factory=dict)
    limits: dict[str, Decimal] = field(default_factory=dict)


def containers(pod: PodView, ranges: Iterable[Object]) -> list[tuple[str, ContainerResources]]:
    """(path, resources) of each container: the program's values, then the LimitRanges' defaults.

    A container with a limit and no request requests the limit.
    """
    defaults = ContainerResources("")
    for limits in ranges:
        for _, row in rows(at(limits, "spec.limits")):
            if row.get("type") == "Container":
                # Defaults of a range: limits from the maximum, requests from limits or else the minimum.
                limited = {**_parsed(row.get("max")), **_parsed(row.get("default"))}
                least = {**_parsed(row.get("min")), **limited, **_parsed(row.get("defaultRequest"))}
                defaults.limits.update(limited)
                defaults.requests.update(least)
    found = []
    for path, container in pod.containers():
        resources = mapping(container.get("resources"))
        own_limits, own_requests = _parsed(resources.get("limits")), _parsed(resources.get("requests"))
        # The API server sets requests from the program's limits before admission adds defaults.
        requests = {**defaults.limits, **defaults.requests, **own_limits, **own_requests}
        found.append(
            (
                path,
                ContainerResources(str(container.get("name")), requests, {**defaults.limits, **own_limits}),
            )
        )
    return found


def together(asked: Iterable[tuple[str, ContainerResources]]) -> ContainerResources:
    """Requests of a pod: the sum over containers, or the largest init container where that is more."""
    pod = ContainerResources("pod")
    for path, one in asked:
        for total, own in ((pod.requests, one.requests), (pod.limits, one.limits)):
            for name, value in own.items():
                if ".initContainers[" not in path:
                    total[name] = total.get(name, Decimal(0)) + value
    for path, one in asked:
        for total, own in ((pod.requests, one.requests), (pod.limits, one.limits)):
            for name, value in own.items():
                if ".initContainers[" in path:
                    total[name] = max(total.get(name, Decimal(0)), value)
    return pod


def charged(asked: ContainerResources) -> dict[str, Decimal]:
    """Usage of a ResourceQuota by one such pod, by the quota's names."""
    used = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for name, value in asked.requests.items():
        used[f"requests.{name}"] = value
        if "/" not in name:
            used[name] = value
    for name, value in asked.limits.items():
        if "/" not in name:
            used[f"limits.{name}"] = value
    return used


def show(value: Decimal) -> str:
    """A quantity in Kubernetes notation: `500m`, `2`, `16Gi`."""
    if value % 1:
        return f"{int(value * 1000)}m"
    for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
        if value and value % size == 0:
            return f"{int(value / size)}{unit}"
    return str(int(value))


def _parsed(found: Any) -> dict[str, Decimal]:
    parsed = ((str(name), amount(value)) for name, value in mapping(found).items())
    return {name: value for name, value in parsed if value is not None}
