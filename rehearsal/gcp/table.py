"""One row per Google type: its id, what it refers to, what replaces it, what keeps it from being deleted.

Columns of a row in `tables/*.toml` (all but `id` optional; templates are explained in `naming`):

- `id`, `link`, `outputs`, `issues`: template of the id (Terraform's form), the host that makes a self link of
  it, templates of further computed outputs, and the outputs by which others may refer to it besides those.
- `place`: region, zone or location, if it is in one: the provider's configuration fills it in; `everywhere`:
  ids are unique across projects.
- `name`, `name_length`: the property that names it, and how long an automatic name may be.
- `upper`: properties that the service spells in capitals; `leaf`: those that the id uses without their path.
- `replace`: paths whose change replaces the resource; `"*"` is all, `"-x"` takes x out again; `grows`: ranges
  whose change replaces it only when they shrink.
- `refs`: property path -> type it refers to, by self link, id or name; `default_names`: every project has
  those.
- `missing`, `exists`: the service's error when one does not exist, or exists already.
- `defaults`: values the service fills in.
- `protected`: a property that forbids the deletion while it is true, and the words.
- `kept`: why a name is not free again after the deletion.
- `blocked`: the refusal to delete while types `by` (or any: `"*"`) refer to it.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.core.rules.tables import Blocked, blocked, by_type, covers

_FOLDER = Path(__file__).with_name("tables")


@dataclass(frozen=True)
class Row:
    """What the table says about one type; the defaults serve types that are in no table."""

    token: str
    id: str
    link: str = ""
    place: str = ""
    everywhere: bool = False
    name: str = "name"
    name_length: int = 63
    upper: tuple[str, ...] = ()
    leaf: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    grows: tuple[str, ...] = ()
    refs: Mapping[str, str] = field(default_factory=dict)
    default_names: tuple[str, ...] = ()
    missing: tuple[str, str] = ("notFound", "The resource '{value}' was not found")
    exists: tuple[str, str] = ("alreadyExists", "The resource '{id}' already exists")
    defaults: Properties = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[str, ...] = ()
    protected: tuple[str, str] | None = None
    kept: str = ""
    blocked: Blocked | None = None

    def replaces(self, path: str) -> bool:
        """Whether a change at `path` forces a replacement."""
        return covers(self.replace, path)

    def display_name(self, inputs: Properties) -> str:
        """The physical name in the inputs, or nothing."""
        value = at(inputs, self.name)
        return value if isinstance(value, str) else ""


@functools.cache
def rows() -> Mapping[str, Row]:
    """Every row of every table by its full token, such as `gcp:compute/network:Network`."""
    return {token: _row(token, data) for token, data in by_type(_FOLDER, "gcp")}


def _row(token: str, data: Mapping[str, Any]) -> Row:
    columns: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    if "blocked" in columns:
        columns["blocked"] = blocked("gcp", columns["blocked"])
    refs = {path: f"gcp:{target}" for path, target in columns.pop("refs", {}).items()}
    return Row(token=token, refs=refs, **columns)


def row(token: str, properties: Mapping[str, Any]) -> Row:
    """The row of a type; one that is in no table is kept generically, by which `properties` it has."""
    found = rows().get(token)
    if found is not None:
        return found
    place = next((name for name in ("zone", "location", "region") if name in properties), "")
    kind = token.rpartition(":")[2]
    parts = ["projects/{project}", f"{place}s/{{{place}}}" if place else "global"]
    leaf = "{name}" if "name" in properties else "{hex16}"
    identity = f"{'/'.join(parts)}/{kind[0].lower()}{kind[1:]}s/{leaf}"
    link = "https://www.googleapis.com/compute/v1/" if token.startswith("gcp:compute/") else ""
    return Row(token, identity, link, place, replace=("name", "project", "region", "location", "zone"))
