"""Mutants of a stack: one property that rules look at is worse in each, as a careless change makes it.

Which properties rules look at is not listed but seen: the rules judge resources that note every reading.
"""

import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from policies.catalog import PolicyRule
from policies.evaluate import RuleOutcome, evaluate
from policies.resource import PartlyKnown, Resource, is_unknown
from policies.settings import RuleSettings
from policies.stack import Stack

Path = tuple[str | int, ...]
_Readings = dict[tuple[str, Path], set[str]]
"""The ids of the rules that look at a path of a resource, which is named by its URN."""
GONE = object()
"""Put in the place of a value, it takes the value away."""
_IDENTITY = ("apiVersion", "kind", "name", "namespace", "type")
"""What makes a resource this one: without it there is another resource or none, and not a worse one."""


@dataclass(frozen=True)
class Mutant:
    """A stack in which one property of one resource is worse, or (without a path) that lacks it."""

    urn: str
    kind: str
    path: Path
    how: str
    value: Any

    @property
    def name(self) -> str:
        """`TYPE PLACE HOW`; in the place, `#` stands for any number of a list."""
        place = ".".join("#" if isinstance(part, int) else part for part in self.path)
        return f"{self.kind} {place} {self.how}" if place else f"{self.kind} {self.how}"

    def of(self, resources: Iterable[Resource]) -> list[Resource]:
        """The resources with the mutant in its place, or without it."""
        if not self.path:
            return [one for one in resources if one.urn != self.urn]
        return [self._changed(one) if one.urn == self.urn else one for one in resources]

    def _changed(self, resource: Resource) -> Resource:
        tags, below = resource.tags, self.path[1:]
        if self.path[0] in ("tags", "labels"):
            tags = put(tags, below, self.value) if below else {}
        asked = None if resource.asked is None else put(resource.asked, self.path, self.value)
        return replace(resource, props=put(resource.props, self.path, self.value), asked=asked, tags=tags)


def put(value: Any, path: Path, instead: Any) -> Any:
    """The value with another one at a path, if there is one. What is above it is copied, and not changed."""
    first, *below = path
    if not _has(value, first):
        return value
    if isinstance(value, dict):
        made: Any = type(value)({key: dict.__getitem__(value, key) for key in value})
        old = dict.__getitem__(value, first)
    else:
        made, old = list(value), value[first]
    if below:
        made[first] = put(old, tuple(below), instead)
    elif instead is GONE:
        del made[first]
    else:
        made[first] = instead
    return made


def _has(value: Any, part: str | int) -> bool:
    if is_unknown(value):
        return False
    if isinstance(value, dict):
        return dict.__contains__(value, part)
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


class _Seen(PartlyKnown):
    """Properties that note what is read of them."""

    def bound(self, path: Path, note: Any) -> "_Seen":
        self._path, self._note = path, note
        return self

    def __getitem__(self, key: str) -> Any:
        self._note((*self._path, key))
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note((*self._path, key))
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._note((*self._path, str(key)))
        return super().__contains__(key)


def _watched(value: Any, path: Path, note: Any) -> Any:
    if is_unknown(value):
        return value
    if isinstance(value, dict):
        made = {key: _watched(dict.__getitem__(value, key), (*path, key), note) for key in value}
        return _Seen(made).bound(path, note)
    if isinstance(value, list):
        return [_watched(one, (*path, index), note) for index, one in enumerate(value)]
    return value


@dataclass(frozen=True, eq=False, slots=True)
class _Watched(Resource):
    """A resource that also notes what `raw` reads, which looks below what `PartlyKnown` hands out."""

    note: Any = field(default=None, repr=False)

    def raw(self, path: str) -> Any:
        self.note(tuple(path.split(".")))
        return Resource.raw(self, path)


def _readings(
    resources: Iterable[Resource], rules: Iterable[PolicyRule], settings: RuleSettings
) -> _Readings:
    """What of the resources rules look at, and which rules."""
    found: _Readings = {}
    judging = [""]

    def watch(one: Resource) -> Resource:
        def note(path: Path) -> None:
            found.setdefault((one.urn, path), set()).add(judging[0])

        given = {item.name: getattr(one, item.name) for item in fields(Resource)}
        given["props"] = _watched(one.props, (), note)
        given["asked"] = None if one.asked is None else _watched(one.asked, (), note)
        given["tags"] = _watched(one.tags, ("tags",), note)
        return _Watched(**given, note=note)

    watched = [watch(one) for one in resources]
    for rule in rules:
        judging[0] = rule.id
        evaluate(Stack(watched, settings), [rule])
    return found


def _mutants(resources: Iterable[Resource], seen: _Readings) -> Iterator[Mutant]:
    """Every mutant of what is set, at the paths that rules look at and below which they look no further.

    And a stack without each of the resources that rules look at.
    """
    by_urn = {one.urn: one for one in resources}
    for urn in sorted({urn for urn, _ in seen}):
        yield Mutant(urn, by_urn[urn].kind, (), "removed", GONE)
    above = {(urn, path[:length]) for urn, path in seen for length in range(1, len(path))}
    for urn, path in sorted(seen.keys() - above, key=str):
        resource = by_urn[urn]
        value = _at(resource.asked or {}, path)
        if value is GONE or is_unknown(value):
            continue
        for how, worse in _worse(path, value):
            yield Mutant(urn, resource.kind, path, how, worse)


def _at(value: Any, path: Path) -> Any:
    for part in path:
        if not _has(value, part):
            return GONE
        value = dict.__getitem__(value, part) if isinstance(value, dict) else value[part]
    return value


def _worse(path: Path, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        if value:
            yield "emptied", {}
        return
    if path[-1] not in _IDENTITY:
        yield "dropped", GONE
    if isinstance(value, bool):
        yield "turned", not value
    elif isinstance(value, int | float) and value:
        yield "tenth", value / 10 if isinstance(value, float) else value // 10
        yield "tenfold", value * 10
    elif isinstance(value, str):
        yield from _worse_text(value)


def _worse_text(value: str) -> Iterator[tuple[str, Any]]:
    if "/" in value:
        try:
            network = ipaddress.ip_network(value, strict=False)
        except ValueError:
            pass
        else:
            yield "opened", "0.0.0.0/0" if network.version == 4 else "::/0"
    if value.startswith("{"):
        try:
            document = json.loads(value)
        except ValueError:
            return
        yield from _worse_document(document)
    if "@sha256:" in value:
        yield "unpinned", value.partition("@")[0]


def _worse_document(document: Any) -> Iterator[tuple[str, Any]]:
    """A policy document in which one statement allows more, or protects less."""
    statements = document.get("Statement") if isinstance(document, Mapping) else None
    for index, statement in enumerate(statements if isinstance(statements, list) else []):
        for key, wide in (("Action", "*"), ("Resource", "*"), ("Principal", "*"), ("Condition", GONE)):
            if statement.get(key, wide) not in (wide, [wide]):
                changed = put(document, ("Statement", index, key), wide)
                yield f"{statement['Effect'].lower()} {key}", json.dumps(changed)
        if statement.get("Effect") == "Deny":
            yield "deny dropped", json.dumps(put(document, ("Statement", index), GONE))


@dataclass(frozen=True)
class Fates:
    """What became of mutants, by their names."""

    reported: Sequence[str]
    """A rule is broken that was not."""
    open: Sequence[str]
    """A rule cannot judge what it judged."""
    survived: Sequence[str]


def fates(resources: list[Resource], rules: Mapping[str, PolicyRule], settings: RuleSettings) -> Fates:
    """Judge every mutant by the rules that look at what is mutated."""
    # A rule that has found what it looks for looks no further: what it reads depends on the order.
    resources = sorted(resources, key=lambda one: one.urn)
    good = {_key(one) for one in evaluate(Stack(resources, settings), rules.values())}
    seen = _readings(resources, rules.values(), settings)
    looking: dict[str, set[str]] = {}
    for (urn, _), ids in seen.items():
        looking.setdefault(urn, set()).update(ids)
    by_result: dict[str, list[str]] = {"fail": [], "undetermined": [], "": []}
    for mutant in _mutants(resources, seen):
        asked = seen[mutant.urn, mutant.path] if mutant.path else looking[mutant.urn]
        judged = evaluate(Stack(mutant.of(resources), settings), [rules[one] for one in sorted(asked)])
        new = {one.result for one in judged if _key(one) not in good}
        worst = next((result for result in ("fail", "undetermined") if result in new), "")
        by_result[worst].append(mutant.name)
    return Fates(by_result["fail"], by_result["undetermined"], by_result[""])


def _key(outcome: RuleOutcome) -> tuple[str, str, str, str]:
    urn = outcome.urn
    return outcome.rule.id, urn, outcome.result, outcome.message
