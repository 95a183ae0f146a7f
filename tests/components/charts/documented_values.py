"""Documented values of a chart, and ours that it does not document.

Helm hands values on as they are: a key that no template reads is ignored without a word.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FOLDER = Path(__file__).with_name("documented")
ADDONS = Path(__file__).with_name("documented_addons")
# What charts put into a pod as it is: the API server is its judge.
OF_PODS = frozenset(("affinity", "extraEnv", "nodeSelector", "resources", "securityContext", "tolerations"))
_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", type(None): "any"}

Shape = Mapping[str, Any]


@dataclass(frozen=True)
class Documented:
    """The version that was read, and what it may be given: nested maps whose leaves say the kind of a value.

    A leaf is `boolean`, `number`, `string`, `list`, `map` (its keys are free) or `any`.
    """

    version: str
    values: Shape


def noted(name: str, folder: Path = FOLDER) -> Documented:
    """What was read of a chart whose source is not here, or of an add-on of EKS."""
    row = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    return Documented(row["version"], row["values"])


def of_source(chart: Path) -> Documented:
    """What a chart's own files say."""
    read = YAML(typ="safe")
    return Documented(
        read.load((chart / "Chart.yaml").read_text(encoding="utf-8"))["version"],
        _shape(read.load((chart / "values.yaml").read_text(encoding="utf-8")) or {}),
    )


def unknown(values: Mapping[str, Any], documented: Shape, path: str = "") -> Iterator[str]:
    """The paths of values that the chart does not know, or knows as something else."""
    for key, value in values.items():
        here, said = f"{path}{key}", documented.get(key)
        if said is None:
            yield f"{here}: the chart has no such value"
        elif isinstance(said, str):
            if said not in ("any", kind(value)):
                yield f"{here}: the chart takes a {said}, this is a {kind(value)}"
        elif isinstance(value, Mapping):
            yield from unknown(value, said, f"{here}.")
        else:
            yield f"{here}: the chart takes a map, this is a {kind(value)}"


def kind(value: object) -> str:
    """The kind of a value, as documented ones are called."""
    return _KINDS.get(type(value), "map")


def of_a_pod(path: tuple[str | int, ...]) -> bool:
    """Whether a key is within what a chart hands on to a pod as it is."""
    return not OF_PODS.isdisjoint(path[:-1])


def handed_on(path: tuple[str | int, ...], documented: Shape) -> bool:
    """Whether a key is within what a chart hands on as it is: to a pod, or where keys are free."""
    return of_a_pod(path) or _free(path[:-1], documented)


def _free(path: tuple[str | int, ...], documented: Shape | str | None) -> bool:
    for part in path:
        documented = documented.get(str(part)) if isinstance(documented, Mapping) else documented
    return isinstance(documented, str)


def _shape(values: Mapping[str, Any]) -> Shape:
    return {
        key: _shape(value) if isinstance(value, dict) and value and key not in OF_PODS else kind(value)
        for key, value in values.items()
    }
