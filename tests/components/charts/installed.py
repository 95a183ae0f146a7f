"""The releases of the shipped stacks, with the values that their components pass."""

import copy
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra import stackspec
from tests.stacks.composition.composed import composed, deployed
from tests.stacks.composition.variants import MEDIUM_AWS

Path = tuple[str | int, ...]
_PAIR = ("medium", "aws")
# Together they install every chart.
_VARIANTS = (None, "claimed-devices")
SLURM = "large-slinky-aws"
"""The stack with Slurm in its cluster."""


@functools.cache
def installed() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The inputs of Helm releases by the chart's key: each that differs once."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    graphs = [composed(_PAIR, MEDIUM_AWS[variant] if variant else None) for variant in _VARIANTS]
    for graph in (*graphs, deployed(stackspec.load_file(SLURM).spec)):
        for release in graph.all("Release").values():
            known = found.setdefault(release["name"], [])
            if release not in known:
                known.append(release)
    return found


@functools.cache
def addon_settings() -> Mapping[str, Mapping[str, Any]]:
    """The settings of the add-ons of EKS that have any, by name."""
    found = composed(_PAIR).all("Addon").values()
    return {
        addon["addonName"]: json.loads(addon["configurationValues"])
        for addon in found
        if "configurationValues" in addon
    }


def keys(values: object, at: Path = ()) -> Iterator[Path]:
    """The paths of all keys, through maps and lists."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield (*at, key)
            yield from keys(value, (*at, key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from keys(value, (*at, index))


def misspelt(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A copy of the values with the key at that path misspelt."""
    changed = copy.deepcopy(dict(values))
    into: Any = changed
    for part in path[:-1]:
        into = into[part]
    into[f"{path[-1]}X"] = into.pop(path[-1])
    return changed
