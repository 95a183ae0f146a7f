"""Entries of one object that several resources describe: rules of a group, members of a role, tags.

A relation is a list of entries in the cloud, such as the policies that are attached to roles. A facet is
how a type of resource describes them: as one entry (an attachment), as a list of its own (the managed
policies of a role), or as a single property (the policy of a topic). Rows of TOML describe most facets:

- `relation`: its name in messages, with `key` (the fields that identify an entry), `of` (field -> type whose
  resources it names), `source`, and maybe `refused`: code and message for an entry that exists;
- `facets`: `type` and a property path for each field; `list[]` and `list[].name` describe a list. `part`: the
  property belongs to the resource, which stays without it. `strict`: what the resource does not list is
  removed (`create` or `always`; otherwise only what it listed before). `keeps`: a delete removes nothing.
  `only`: values by which a resource belongs to the relation.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rehearsal.core.drift import put
from rehearsal.core.emulation.site import BaseSite
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known

Key = tuple[Any, ...]
Entries = dict[Key, Mapping[str, Any]]
"""Key of each entry -> all its fields."""


class Facet(Protocol):
    """Description of entries by the resources of one type."""

    @property
    def type(self) -> str:
        """The type, without its package."""

    @property
    def shows(self) -> str:
        """The property that also shows entries of others; empty for a resource that is one entry."""

    @property
    def strict(self) -> str:
        """Requests that remove everything else in its range: `create`, `always` or none."""

    @property
    def removes(self) -> bool:
        """Return whether a delete removes what the resource describes."""

    @property
    def removable(self) -> bool:
        """Return whether the resource is gone without its entries."""

    @property
    def inside(self) -> bool:
        """Return whether the entries lie inside of the resource: no other of its type has the same."""

    def stated(self, inputs: Properties) -> bool:
        """Return whether a program decides what the resource describes."""

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """The entries that a resource with these properties describes."""

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """Return whether an entry belongs to what the resource shows."""

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """The properties with exactly these entries."""


@dataclass(frozen=True)
class Relation:
    """Facets of the same entries; `refused` is the error for an entry that exists; else it is rewritten."""

    name: str
    facets: Sequence[Facet]
    refused: tuple[str, str] | None = None
    source: str = ""


@dataclass(frozen=True)
class Columns:
    """A facet by the property paths of its fields."""

    type: str
    key: tuple[str, ...]
    paths: Mapping[str, str]
    of: Mapping[str, str] = field(default_factory=dict)
    part: bool = False
    strict: str = ""
    keeps: bool = False
    only: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shows(self) -> str:
        """See `Facet`."""
        if self.part:
            return next(path for name, path in self.paths.items() if name not in self.key)
        return next((path.partition("[]")[0] for path in self.paths.values() if "[]" in path), "")

    @property
    def removes(self) -> bool:
        """See `Facet`; what lies inside of a resource goes with it."""
        return not self.keeps and not self.inside

    @property
    def removable(self) -> bool:
        """See `Facet`."""
        return not self.shows

    @property
    def inside(self) -> bool:
        """See `Facet`."""
        return "id" in self.paths.values()

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`."""
        return not self.shows or self.shows in inputs

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        fixed = self._fixed(site, id, properties)
        if fixed is None or (self.part and not known(at(properties, self.shows))):
            return {}
        found: Entries = {}
        for item in self._items(properties):
            inner = {
                name: self._named(site, name, at(item, "item" + path.partition("[]")[2]))
                for name, path in self.paths.items()
                if "[]" in path
            }
            fields = {**fixed, **inner}
            if all(fields.get(name) is None for name in self.key if name in inner) and inner:
                continue
            found[self._key(fields)] = fields
        return found

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        fixed = self._fixed(site, id, properties)
        if fixed is None:
            return False
        return all(fixed.get(name, value) == value for name, value in zip(self.key, key, strict=True))

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`."""
        if not self.shows or self.part:
            fields = next(iter(entries.values()), {})
            free = [name for name in self.paths if name not in self.key]
            return self._with(properties, {name: fields.get(name) for name in free})
        own = self.entries(site, id, properties)
        kept = [key for key in own if key in entries]
        others = sorted((key for key in entries if key not in own), key=repr)
        before = {self._key_of(site, id, properties, item): item["item"] for item in self._items(properties)}
        items = [self._item(entries[key], own.get(key), before.get(key)) for key in (*kept, *others)]
        return {**properties, self.shows: items}

    def _item(self, fields: Mapping[str, Any], own: Mapping[str, Any] | None, before: Any) -> Any:
        """An item of the list; that of the resource itself keeps what the relation does not know."""
        if own == fields and before is not None:
            return before
        made: Any = dict(before) if isinstance(before, dict) else {}
        for name, path in self.paths.items():
            _, inside, rest = path.partition("[]")
            if inside and not rest:
                return fields.get(name)
            if inside and fields.get(name) is not None:
                made = put(made, rest.removeprefix("."), fields[name])
        return made

    def _with(self, properties: Properties, values: Mapping[str, Any]) -> Properties:
        for name, value in values.items():
            if at(properties, self.paths[name]) != value:
                properties = put(properties, self.paths[name], value)
        return properties

    def _fixed(self, site: BaseSite, id: str, properties: Properties) -> dict[str, Any] | None:
        """The fields outside of the list; None for a resource that is not in the relation."""
        if any((at(properties, path) or False) != value for path, value in self.only.items()):
            return None
        fixed = {
            name: self._named(site, name, id if path == "id" else at(properties, path))
            for name, path in self.paths.items()
            if "[]" not in path
        }
        needed = next((name for name in self.key if name in fixed), None)
        return None if needed is not None and fixed[needed] is None else fixed

    def _items(self, properties: Properties) -> Iterator[Mapping[str, Any]]:
        if not self.shows or self.part:
            yield {"item": None}
            return
        items = at(properties, self.shows)
        yield from ({"item": one} for one in items if known(one)) if isinstance(items, list) else ()

    def _key(self, fields: Mapping[str, Any]) -> Key:
        return tuple(fields.get(name) for name in self.key)

    def _key_of(self, site: BaseSite, id: str, properties: Properties, item: Mapping[str, Any]) -> Key:
        return next(iter(self.entries(site, id, {**properties, self.shows: [item["item"]]})), ())

    def _named(self, site: BaseSite, name: str, value: Any) -> Any:
        """A value of a field; the id of the resource that it names, and None where it is empty or unknown."""
        if not known(value) or value == "":
            return None
        target = self.of.get(name)
        record = site.find(value, target) if target else None
        return record.id if record else value


def relations(file: Path) -> list[Relation]:
    """The relations in the rows of a file."""
    found = []
    for row in tomllib.loads(file.read_text())["relation"]:
        key, of = tuple(row["key"]), row.get("of", {})
        facets = []
        for one in row["facets"]:
            more = {name: one[name] for name in ("part", "strict", "keeps", "only") if name in one}
            paths = {name: path for name, path in one.items() if name not in {*more, "type"}}
            facets.append(Columns(one["type"], key, paths, of, **more))
        refused = tuple(row["refused"]) if "refused" in row else None
        found.append(Relation(row["relation"], facets, refused, row["source"]))
    return found
