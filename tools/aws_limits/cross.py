"""Limits across the properties of a type, by configurations in which all are set, or none is."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from tools.aws_limits.leaves import Leaf, Path, configuration, heads
from tools.provider_protocol import Diagnostic, Fields, TerraformProvider

_TRIES = 12
_PAIR = re.compile(r'"([^"]+)": conflicts with ([\w.-]+)|"([^"]+)" cannot be specified when "([^"]+)" is')
_ONE = re.compile(
    r"(?:only one of|one \(and only one\) of|Exactly one of these attributes must be configured:)"
    r"\s*([`\[].+?[`\]](?=[ ,.\n]|$))"
)
_SOME = re.compile(
    r"(?<!only )\bone of (`[^`]+`) must be specified"
    r"|[Aa]t least one (?:of these attributes must be configured:|attribute out of)"
    r"\s*(\[.+?\])(?= must|$|[ ,.\n])"
)
_MOST = re.compile(r"(?:at most one of|These attributes cannot be configured together:)\s*(\[.+\])")
_ALL = re.compile(r'"([^"]+)": all of (`[^`]+`) must')
_WITH = re.compile(r'"([^"]+)" must be specified when "([^"]+)" is')
_COUNTS = (
    re.compile(r"Attribute (\S+) (?:requires (\d+) item minimum|supports (\d+) item maximum)"),
    re.compile(r"Attribute (\S+) \w+ must contain (?:at least (\d+)|at most (\d+)) elements"),
    re.compile(r"Attribute (\S+) \w+ must contain at least (\d+) elements and at most (\d+) elements"),
)
_MANY_ITEMS = 300


@dataclass
class Cross:
    """Paths that exclude or need each other."""

    excluded: dict[Path, set[Path]] = field(default_factory=dict)
    exactly_one: set[tuple[Path, ...]] = field(default_factory=set)
    some: set[tuple[Path, ...]] = field(default_factory=set)
    needs: dict[Path, set[Path]] = field(default_factory=dict)
    values: dict[Path, Any] = field(default_factory=dict)
    """A value of the form of each attribute."""

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Read errors."""
        for one in found:
            text = f"{one.summary} {one.detail}"
            for match in _PAIR.finditer(text):
                first, second = [each for each in match.groups() if each]
                self._exclude(_path(first), _path(second))
            for pattern, into in ((_ONE, self.exactly_one), (_SOME, self.some)):
                groups = (_paths(next(filter(None, match.groups()))) for match in pattern.finditer(text))
                into.update(group for group in groups if len(group) > 1)
            for group in map(_paths, _MOST.findall(text)):
                for first in group:
                    for second in group:
                        self._exclude(first, second)
            for first, those in _ALL.findall(text):
                self.needs.setdefault(_path(first), set()).update({*_paths(those)} - {_path(first)})
            for second, first in _WITH.findall(text):
                self.needs.setdefault(_path(first), set()).add(_path(second))

    def _exclude(self, first: Path, second: Path) -> None:
        if first != second:
            self.excluded.setdefault(first, set()).add(second)

    def apart(self) -> dict[Path, set[Path]]:
        """The paths beside which each cannot be set."""
        found = {path: {*those} for path, those in self.excluded.items()}
        for group in self.exactly_one:
            for path in group:
                found.setdefault(path, set()).update({*group} - {path})
        return found

    def needed(self, set_: Collection[Path]) -> dict[Path, Any]:
        """Values of what the paths that are set, or the blocks around them, need beside them."""
        those = {other for path in set_ for one in heads(path) for other in self.needs.get(one, ())}
        return {path: self.values[path] for path in sorted(those - {*set_}) if path in self.values}

    def plain(self) -> dict[str, Any]:
        """The limits as data, with dots in paths."""
        some = {group for group in self.some if not any({*group} <= {*one} for one in self.exactly_one)}
        pairs = {
            ".".join(path): sorted(map(".".join, those)) for path, those in sorted(self.excluded.items())
        }
        needs = {".".join(path): sorted(map(".".join, those)) for path, those in sorted(self.needs.items())}
        found = {
            "excludes": pairs,
            "exactly_one": [[*map(".".join, group)] for group in sorted(self.exactly_one)],
            "some": [[*map(".".join, group)] for group in sorted(some)],
            "needs": needs,
        }
        return {name: value for name, value in found.items() if value}


def usual(leaf: Leaf) -> Any:
    """A value of the form of a leaf; none for forms that have no simple one."""
    value = {"text": "abc", "number": 1, "bool": True}.get(leaf.form)
    return [value] if leaf.many and value is not None else value


def cross(provider: TerraformProvider, kind: str, block: Fields, found: Iterable[Leaf]) -> Cross:
    """The limits of a type."""
    values = {leaf.path: value for leaf in found if (value := usual(leaf)) is not None}
    present = [*_blocks(values)]
    limits = Cross(values=values)
    limits.add(provider.validate(kind, configuration(block, {})))
    limits.add(provider.validate(kind, configuration(block, {}, present)))
    limits.add(provider.validate(kind, configuration(block, values)))
    for path in [*limits.excluded]:
        for _ in range(_TRIES):
            before = len(limits.excluded[path])
            rest = _without(values, limits.excluded[path])
            limits.add(one for one in provider.validate(kind, configuration(block, rest)) if _of(one, path))
            if len(limits.excluded[path]) == before:
                break
    return limits


def counts(
    provider: TerraformProvider, kind: str, block: Fields, found: Iterable[Leaf]
) -> dict[str, list[int | None]]:
    """Fewest and most items of lists by path, with dots."""
    many = {leaf.path: leaf for leaf in found if leaf.many and leaf.form in ("text", "number")}
    several = {path: _several(leaf) for path, leaf in many.items()}
    said: list[Diagnostic] = []
    nothing: dict[Path, list[Any]] = {path: [] for path in many}
    for values in (several, nothing):
        said += provider.validate(kind, configuration(block, values))
    limits: dict[str, list[int | None]] = {}
    for one in said:
        for pattern in _COUNTS:
            for name, least, most in pattern.findall(f"{one.summary} {one.detail}"):
                if (path := _path(name)) in many:
                    bounds = limits.setdefault(".".join(path), [None, None])
                    bounds[:] = [int(least) if least else bounds[0], int(most) if most else bounds[1]]
    return limits


def _several(leaf: Leaf) -> list[Any]:
    return [*range(_MANY_ITEMS)] if leaf.form == "number" else [f"abc{one}" for one in range(_MANY_ITEMS)]


def _of(one: Diagnostic, path: Path) -> bool:
    match = _PAIR.search(f"{one.summary} {one.detail}")
    return match is not None and _path(match[1] or match[3]) == path


def _without(values: dict[Path, Any], those: Iterable[Path]) -> dict[Path, Any]:
    return {
        path: value
        for path, value in values.items()
        if not any(path[: len(other)] == other for other in those)
    }


def _blocks(values: Iterable[Path]) -> list[Path]:
    return [*dict.fromkeys(path[:size] for path in values for size in range(1, len(path)))]


def _path(text: str) -> Path:
    plain = re.sub(r"\[.*?\](?=\.|$)", "", text)
    return tuple(part for part in plain.split(".") if part and not part.isdigit())


def _paths(text: str) -> tuple[Path, ...]:
    inside = re.sub(r"\[(?:\d+|Value\(.*?\))\]", "", text.strip("`"))
    inside = inside.removeprefix("[").removesuffix("]").strip()
    found = {_path(one.strip('`" ')) for one in re.split(r"[,\s]+", inside) if one}
    return tuple(sorted(found))
