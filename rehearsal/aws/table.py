"""One row per AWS type: its names, what it refers to, what replaces it, what keeps it from being deleted.

Columns of a row in `tables/*.toml` (all but `id` optional; templates are explained in `naming`):

- `id`, `arn`, `outputs`, `issues`: templates of the id, the ARN and further computed outputs; the outputs by
  which others may refer to it besides id, ARN and name.
- `name`, `name_length`, `name_lower`, `name_prefix`: the property that is named automatically, and how;
  `name_plain`: it is called like the resource, without random characters.
- `global`: one per account, not per region; `everywhere`: ids are unique across regions and accounts.
- `replace`: property paths whose change replaces the resource; `"*"` is all, `"-tags"` takes one out again.
  `replace_lower`: paths of numbers and versions that only go up in place; `replace_unset`: paths that cannot
  be taken away in place; `replace_if`: paths that depend on another property (`of`, `unless`: its values).
  `source`: where these lists were read, for the rows whose file-wide source is not enough.
- `names`: property path -> type it names; `default_names`: prefixes of names that every account has.
- `missing`: error code and message when somebody refers to one that does not exist.
- `unique`: properties that no two may share, with the service's error.
- `defaults`: values the service fills in.
- `blocked`: the service's refusal to delete while types `by` (but not `except`) refer to it; references held
  at the properties `own` do not count.
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
class Unique:
    """Properties that no two resources of a scope may share."""

    properties: tuple[str, ...]
    code: str
    message: str


@dataclass(frozen=True)
class Row:
    """What the table says about one type; the defaults serve types that are in no table."""

    token: str
    id: str
    arn: str = ""
    name: str = ""
    name_length: int = 255
    name_lower: bool = False
    name_prefix: str = ""
    name_plain: bool = False
    is_global: bool = False
    everywhere: bool = False
    replace: tuple[str, ...] = ()
    replace_lower: tuple[str, ...] = ()
    replace_unset: tuple[str, ...] = ()
    replace_if: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    default_names: tuple[str, ...] = ()
    missing: tuple[str, str] | None = None
    unique: Unique | None = None
    defaults: Properties = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[str, ...] = ()
    blocked: Blocked | None = None
    known: bool = True

    def replaces(self, path: str) -> bool:
        """Whether a change at `path` forces a replacement."""
        return covers(self.replace, path)

    def display_name(self, inputs: Properties) -> str:
        """The physical name in the inputs, or nothing."""
        value = at(inputs, self.name) if self.name else None
        return value if isinstance(value, str) else ""


@functools.cache
def rows() -> Mapping[str, Row]:
    """Every row of every table by its full token, such as `aws:ec2/vpc:Vpc`."""
    return {token: _row(token, data) for token, data in by_type(_FOLDER, "aws")}


def _row(token: str, data: Mapping[str, Any]) -> Row:
    columns = dict(data)
    holders, unique = columns.pop("blocked", None), columns.pop("unique", None)
    return Row(
        token=token,
        is_global=columns.pop("global", False),
        replace=tuple(columns.pop("replace", ())),
        replace_lower=tuple(columns.pop("replace_lower", ())),
        replace_unset=tuple(columns.pop("replace_unset", ())),
        names={path: f"aws:{target}" for path, target in columns.pop("names", {}).items()},
        missing=tuple(columns.pop("missing")) if "missing" in columns else None,
        issues=tuple(columns.pop("issues", ())),
        default_names=tuple(columns.pop("default_names", ())),
        unique=Unique(tuple(unique["properties"]), unique["code"], unique["message"]) if unique else None,
        blocked=blocked("aws", holders) if holders else None,
        **columns,
    )


def row(token: str, *, named: bool = False) -> Row:
    """The row of a type; a type that is in no table is kept generically (`named`: it has a `name`)."""
    found = rows().get(token)
    if found is not None:
        return found
    service, _, kind = token.removeprefix("aws:").partition("/")
    kind = kind.partition(":")[0]
    leaf = "{name}" if named else "{id}"
    return Row(
        token=token,
        id="{name}-{hex8}" if named else f"{kind.lower()}-{{hex17}}",
        arn=f"arn:aws:{service}:{{region}}:{{account}}:{kind}/{leaf}",
        name="name" if named else "",
        replace=("name", "namePrefix", "availabilityZone"),
        known=False,
    )
