"""Tables with a row per resource type: names, references, replacement and deletion.

Columns of a row in `<cloud>/tables/*.toml` (all but `id` optional; templates are explained in `templates`):

- `id`, `link`, `outputs`: templates of the id, of the ARN or self link, and of further computed outputs.
- `issues`: the outputs by which others may refer to it besides id, link and name.
- `place`: `region`, `zone` or `location`, when the provider's configuration may fill it in; `global` for
  a type without one. `everywhere`: ids are unique across accounts, projects and regions.
- `name`, `name_length`, `name_lower`, `name_prefix`: the property with the automatic name, and its form;
  `name_plain`: the automatic name is the resource's own, without random characters.
- `upper`: properties that the service writes in capitals.
- `replace`: property paths whose change replaces the resource; `"*"` is all, `"-tags"` excludes one.
  `replace_lower`: paths of numbers, versions and address ranges that only grow in place; `replace_unset`:
  paths that cannot be unset in place; `replace_if`: paths that depend on another property (`of`,
  `unless`: its values), and on their `change`: `lower`; of a list `not_more` items than before, `not_added`
  (one less, or another in place of one), `begins_or_ends`.
  `in_place`: paths whose change never does, where the plans that the facts are read from have not said so.
- `kept_empty`: lists that stay when a program gives an empty one -> the property that lets them end, for a
  list that is left out, too.
- `unsaved`: properties that the service does not keep while another path is empty: each preview differs.
- `sets`: properties with lists whose order does not matter to the provider, beside those of `changes`.
- `includes`: lists to which the provider adds the value of another property.
- `decided`: properties whose value another property decides: each preview differs from what is there.
- `refs`: property path -> type it refers to; `default_names`: prefixes of names that exist without a program.
- `missing`, `exists`: code and message of the service when one does not exist, or exists already.
- `unique`: properties that no two may share (without it: the id).
- `put`: why a create of what exists is no error: it writes to the same object; `put_same`: only with the same
  inputs.
- `stays`: a deletion ends it only if one of these properties is true; one of several owners leaves it.
- `imported`: templates of the ids by which the provider imports it, instead of that in a state; `misformed`:
  its error for another form (`{value}`: the id).
- `defaults`: values that the service fills in.
- `protected`: a property that forbids the deletion while it is true, with the code and message.
- `kept`: `why` a name stays reserved after the deletion, for how many `days` (a number, or the property that
  holds it; for ever without), and the service's error if it differs from that for a name that is taken.
- `blocked`: the refusal to delete while types `by` (or any: `"*"`), but not `except`, refer to it; references
  at the properties `own` do not block.
- `source`: source of this row, when the source of the whole file is not enough.
"""

import functools
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rehearsal.core.emulation.changes import UNKNOWN_CHANGES, ChangeFacts, Changes
from rehearsal.core.emulation.columns import Blocked, Kept, blocked, by_type, covers, full_tokens
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, head


@dataclass(frozen=True)
class Row:
    """The columns of one type."""

    token: str
    id: str
    link: str = ""
    place: str = ""
    everywhere: bool = False
    name: str = ""
    name_length: int = 255
    name_lower: bool = False
    name_prefix: str = ""
    name_plain: bool = False
    upper: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    includes: Mapping[str, str] = field(default_factory=dict)
    decided: tuple[str, ...] = ()
    unsaved: Mapping[str, str] = field(default_factory=dict)
    replace: tuple[str, ...] = ()
    replace_lower: tuple[str, ...] = ()
    replace_unset: tuple[str, ...] = ()
    replace_if: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    in_place: tuple[str, ...] = ()
    kept_empty: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    default_names: tuple[str, ...] = ()
    missing: tuple[str, str] | None = None
    exists: tuple[str, str] | None = None
    unique: tuple[str, ...] = ()
    put: str = ""
    put_same: bool = False
    stays: tuple[str, ...] | None = None
    imported: tuple[str, ...] = ()
    misformed: str = ""
    defaults: Properties = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    issues: tuple[str, ...] = ()
    protected: tuple[str, str, str] | None = None
    kept: Kept | None = None
    blocked: Blocked | None = None
    source: str = ""
    known: bool = True
    """False for a type without a row."""
    changes: Changes = UNKNOWN_CHANGES
    """The provider's own rules about changes."""

    def replaces(self, path: str) -> bool:
        """Return whether a change at `path` always forces a replacement."""
        if covers(self.replace, path):
            return True
        return covers(self.changes.replace, path) and not self.decides(path)

    def completed(self, inputs: Properties) -> Properties:
        """The inputs with what the provider adds to their lists."""
        more = {
            name: [*inputs[name], inputs[source]]
            for name, source in self.includes.items()
            if isinstance(inputs.get(name), list)
            and inputs.get(source) is not None
            and inputs[source] not in inputs[name]
        }
        return {**inputs, **more}

    def decides(self, path: str) -> bool:
        """Return whether a column names the condition on which a change at `path` replaces the resource."""
        lower = (*self.replace_lower, *self.changes.replace_lower)
        named = path in (*lower, *self.replace_unset, *self.replace_if) or head(path) in self.replace_if
        return named or covers(self.in_place, path)

    def stated(self, inputs: Properties) -> Properties:
        """Inputs as the provider reads them: by `kept_empty`, an empty list is left out, or the reverse."""
        for path, ends in self.kept_empty.items():
            if inputs.get(ends) is True:
                inputs = {path: [], **inputs}
            elif inputs.get(path) == []:
                inputs = {name: value for name, value in inputs.items() if name != path}
        return inputs

    def display_name(self, properties: Properties) -> str:
        """The physical name among the properties, or an empty string."""
        value = at(properties, self.name) if self.name else None
        return value if isinstance(value, str) else ""


class Table:
    """The rows of one package. `usual` are the defaults of its columns.

    `changes` is the file with the facts about changes of its types. `generic` makes the row of a type that is
    in no table, from its token and the names of its properties.
    """

    def __init__(
        self,
        package: str,
        folder: Path,
        generic: Callable[[str, Container[str]], Row],
        changes: Path,
        usual: Mapping[str, Any] | None = None,
    ) -> None:
        self.package = package
        self._folder, self._generic, self._usual = folder, generic, usual or {}
        self.changes = ChangeFacts(changes)

    @functools.cached_property
    def rows(self) -> Mapping[str, Row]:
        """Every row by its full token, such as `aws:ec2/vpc:Vpc`."""
        return {token: self._row(token, data) for token, data in by_type(self._folder, self.package)}

    def row(self, token: str, properties: Container[str] = ()) -> Row:
        """The row of a type; a type that is in no table, with these `properties`, is kept generically."""
        return self.rows.get(token) or self._by_schema(token, properties)

    def _by_schema(self, token: str, properties: Container[str]) -> Row:
        row, facts = self._generic(token, properties), self._changes(token)
        return replace(row, replace=() if facts.known else row.replace, changes=facts)

    def _changes(self, token: str) -> Changes:
        return self.changes.of(token.removeprefix(f"{self.package}:"))

    def _row(self, token: str, data: Mapping[str, Any]) -> Row:
        listed = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        columns: dict[str, Any] = {**self._usual, **listed}
        refs: Mapping[str, str] = columns.pop("refs", {})
        columns["refs"] = dict(zip(refs, full_tokens(self.package, refs.values()), strict=True))
        if "kept" in columns:
            columns["kept"] = Kept(**columns["kept"])
        if "blocked" in columns:
            columns["blocked"] = blocked(self.package, columns["blocked"])
        return Row(token=token, changes=self._changes(token), **columns)
