"""The table of layers: components and modules of resources by layer."""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_REST = -1


@dataclass(frozen=True)
class Layer:
    """One layer of the drawing."""

    key: str
    title: str
    components: Sequence[str]
    types: Sequence[str]


@dataclass(frozen=True)
class Layers:
    """All layers in the order of the drawing."""

    rows: Sequence[Layer]
    split: frozenset[str]
    """Components that are parts of their own also inside of another one."""
    by_component: Mapping[str, Layer]
    by_type: Mapping[str, Layer]

    def of_component(self, name: str) -> Layer:
        """The layer of a component class; the last one for an unknown class."""
        return self.by_component.get(name, self.rows[_REST])

    def of_type(self, kind: str) -> Layer:
        """The layer of a resource type; the last one for an unknown type."""
        return self.by_type.get(kind.partition("/")[0], self.rows[_REST])


@functools.cache
def layers() -> Layers:
    """The table, which lies beside this file."""
    table = tomllib.loads(Path(__file__).with_name("layers.toml").read_text(encoding="utf-8"))
    rows = [Layer(**row) for row in table["layer"]]
    components = {name: row for row in rows for name in row.components}
    types = {name: row for row in rows for name in row.types}
    return Layers(rows, frozenset(table["split"]), components, types)
