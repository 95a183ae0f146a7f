"""Parts of a stack: components of the resource graph, grouped until a person can read them (pure)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainstack.dossier.architecture.layers import Layer, layers

Row = Mapping[str, Any]
_OWN = "trainstack:index:"
_CLOUD = re.compile(r"^(Aws|Gcp)(?=[A-Z])")
_MOST_ALIKE = 4
"""More parts of one class in a layer are drawn as one."""


@dataclass
class DrawnPart:
    """Components and resources that are drawn as one box."""

    key: str
    name: str
    """Its name in the program, without that of the stack."""
    kind: str
    """The class of its component, or the type of its resource."""
    layer: Layer
    urns: set[str] = field(default_factory=set)
    """Its resources, without components."""
    types: Counter[str] = field(default_factory=Counter)
    members: list[str] = field(default_factory=list)
    """Names of the parts that were joined."""


@dataclass(frozen=True)
class DrawnParts:
    """The parts of a stack."""

    rows: Sequence[DrawnPart]
    of: Mapping[str, DrawnPart]
    """By URN of a resource or a component."""

    def name_of(self, urn: str) -> str:
        """The name of the part of a resource; empty without one."""
        return self.of[urn].name if urn in self.of else ""

    def links(self, resources: Iterable[Row]) -> Counter[tuple[str, str]]:
        """Number of dependencies by (part, part that it needs)."""
        found: Counter[tuple[str, str]] = Counter()
        for row in resources:
            near = self.of.get(row["urn"])
            for urn in dict.fromkeys(row.get("dependencies") or ()):
                far = self.of.get(urn)
                if near and far and near is not far:
                    found[near.key, far.key] += 1
        return found


def of_type(urn: str) -> str:
    """The type in a URN."""
    return urn.split("::")[2].rpartition("$")[2]


def name_of(urn: str, stack: str) -> str:
    """The name in a URN, without the name of the stack before it."""
    name = urn.split("::", 3)[3]
    return name.removeprefix(f"{stack}-") or name


def is_counted(row: Row) -> bool:
    """Return whether a row of a state is a resource: no component, no provider, not being deleted."""
    return bool(row.get("custom")) and not of_type(row["urn"]).startswith("pulumi:") and not row.get("delete")


def parts(resources: Sequence[Row], stack: str) -> DrawnParts:
    """The parts of the rows of an engine's state or plan."""
    rows = [row for row in resources if not row.get("delete")]
    by_urn = {row["urn"]: row for row in rows}
    found: dict[str, DrawnPart] = {}
    of: dict[str, DrawnPart] = {}
    for row in rows:
        head = _head(row, by_urn)
        if head is None:
            continue
        part = found.setdefault(head, _part(head, stack))
        of[row["urn"]] = part
        if is_counted(row):
            part.urns.add(row["urn"])
            part.types[of_type(row["urn"])] += 1
    kept = _together([part for part in found.values() if part.urns])
    into = {urn: part for part in kept for urn in part.urns}
    joined = {name: part for part in kept for name in part.members}
    of = {urn: into.get(urn) or joined.get(part.name) or part for urn, part in of.items()}
    return DrawnParts(kept, {urn: part for urn, part in of.items() if part in kept})


def _head(row: Row, by_urn: Mapping[str, Row]) -> str | None:
    """URN of the component or resource that stands for a row in the drawing; None for the stack itself."""
    chain = list[str]()
    at: Row | None = row
    while at is not None and of_type(at["urn"]) != "pulumi:pulumi:Stack":
        chain.append(at["urn"])
        at = by_urn.get(str(at.get("parent") or ""))
    if not chain or of_type(chain[-1]).startswith("pulumi:providers:"):
        return None
    split = layers().split
    return next((urn for urn in chain if of_type(urn).removeprefix(_OWN) in split), chain[-1])


def _part(urn: str, stack: str) -> DrawnPart:
    kind = of_type(urn)
    own = kind.startswith(_OWN)
    short = kind.removeprefix(_OWN)
    layer = layers().of_component(short) if own else layers().of_type(kind)
    label = _CLOUD.sub("", short) if own else kind.rpartition(":")[2]
    return DrawnPart(urn, name_of(urn, stack), label, layer)


def _together(found: Sequence[DrawnPart]) -> list[DrawnPart]:
    """Join parts whose name continues another's, then many parts of one class; sorted by layer and name."""
    order = [row.key for row in layers().rows]
    made: list[DrawnPart] = []
    for part in sorted(found, key=lambda one: (order.index(one.layer.key), one.name, one.key)):
        whole = next((one for one in made if _continues(part, one)), None)
        if whole is None:
            made.append(part)
        else:
            _join(whole, part)
    for (_, kind), count in Counter((one.layer.key, one.kind) for one in made).items():
        alike = [one for one in made if one.kind == kind]
        if count > _MOST_ALIKE:
            for one in alike[1:]:
                _join(alike[0], one)
                made.remove(one)
            alike[0].name = "several"
    return made


def _continues(part: DrawnPart, whole: DrawnPart) -> bool:
    """Return whether a part belongs to another of its layer by its name, and holds no data of its own."""
    same = part.name == whole.name or part.name.startswith(f"{whole.name}-")
    split = of_type(part.key).removeprefix(_OWN) in layers().split
    return whole.layer is part.layer and same and not split


def _join(whole: DrawnPart, part: DrawnPart) -> None:
    whole.urns |= part.urns
    whole.types += part.types
    whole.members += [part.name, *part.members]
