"""Nodes that a plan ends: of node groups that are replaced, or get another image or template."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.engine.plan import PlannedStep


@dataclass(frozen=True)
class _Kind:
    replaces_nodes: tuple[str, ...]
    """Properties whose change replaces every node; others are changed in place."""
    most: Callable[[Mapping[str, Any]], object]
    """The maximum number of nodes, from the group's inputs."""
    pace: Callable[[Mapping[str, Any]], str]
    """The number of nodes replaced at a time, and the order."""
    zones: str | None = None
    """The property with the zones of its nodes: nodes in a removed zone end."""


def drains(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """One line for each node group whose nodes end, with how many at most, and why."""
    for step in steps:
        kind = _KINDS.get(step.type)
        if kind is None or step.operation == "create":
            continue
        why = [path for path in step.changed if _within(path, kind.replaces_nodes)]
        nodes = f"{step.name}: every node (up to {kind.most(step.inputs)})"
        if step.operation == "delete":
            yield f"{nodes} ends"
        elif step.operation == "replace":
            because = ", ".join(step.changed) or "a dependency"
            yield f"{nodes} ends: the group is replaced, because of {because}"
        elif why:
            pace = kind.pace(step.inputs)
            yield f"{nodes} is drained and replaced, {pace}, because of {', '.join(why)}"
        elif left := _removed_zones(step, kind):
            yield f"{step.name}: every node in {', '.join(left)} ends, because of {kind.zones}"


def _removed_zones(step: PlannedStep, kind: _Kind) -> list[str]:
    if kind.zones is None:
        return []
    return sorted({*(step.before.get(kind.zones) or ())} - {*(step.inputs.get(kind.zones) or ())})


def _within(path: str, properties: Iterable[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in properties)


def _eks_pace(inputs: Mapping[str, Any]) -> str:
    update = inputs.get("updateConfig") or {}
    share = update.get("maxUnavailablePercentage")
    at_once = f"{share:g} % at a time" if share else f"{update.get('maxUnavailable', 1):g} at a time"
    return _ordered(at_once, spare=update.get("updateStrategy") != "MINIMAL")


def _gke_most(inputs: Mapping[str, Any]) -> object:
    scaling = inputs.get("autoscaling") or {}
    return scaling.get("totalMaxNodeCount", scaling.get("maxNodeCount", "?"))


def _gke_pace(inputs: Mapping[str, Any]) -> str:
    settings = inputs.get("upgradeSettings") or {}
    surge, missing = settings.get("maxSurge", 1), settings.get("maxUnavailable", 0)
    return _ordered(f"{surge + missing:g} at a time", spare=surge > 0)


def _ordered(at_once: str, *, spare: bool) -> str:
    return f"{at_once}, {'new ones before old ones' if spare else 'old ones before new ones'}"


_KINDS = {
    # Source: Amazon EKS API Reference, UpdateNodegroupVersion and UpdateNodegroupConfig.
    "aws:eks/nodeGroup:NodeGroup": _Kind(
        ("version", "releaseVersion", "launchTemplate"),
        lambda inputs: (inputs.get("scalingConfig") or {}).get("maxSize", "?"),
        _eks_pace,
    ),
    # Source: GKE documentation, "Manage node upgrades": changes that use a node upgrade strategy; GKE API v1,
    # UpdateNodePoolRequest (`locations`: nodes are created in added zones, and end in removed ones).
    "gcp:container/nodePool:NodePool": _Kind(
        (
            "version",
            *(
                f"nodeConfig.{name}"
                for name in (
                    *("machineType", "imageType", "diskType", "diskSizeGb", "bootDisk", "storagePools"),
                    *("kubeletConfig", "linuxNodeConfig", "containerdConfig", "nodeImageConfigs"),
                    *("gcfsConfig", "gvnic", "fastSocket", "gpudirectStrategy", "confidentialNodes"),
                    *("workloadMetadataConfig", "loggingVariant"),
                )
            ),
        ),
        _gke_most,
        _gke_pace,
        "nodeLocations",
    ),
}
