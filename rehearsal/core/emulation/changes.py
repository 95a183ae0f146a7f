"""Facts about changes of the resource types of a provider, read out of its source.

`tools/provider_changes.py` writes one file for each package, with one line for each type and, by property
path without list indices:

- `replace`: properties whose change replaces the resource, as in the tables; `replace_lower`: those that do
  so when they decrease.
- `may`: properties that replace it on a condition that is code of the provider, so that a preview cannot
  know.
- `computed`: optional inputs that the provider fills in, and keeps where a program leaves them out.
- `defaults`: the provider's own values for properties that are left out.
- `sets`: lists without order. `alike`: kind of equality (`equality.KINDS`) -> properties compared by it.
- `filled`: values that the cloud fills in for `computed` properties, by the documentation of the SDK; in
  `filled.json` beside the file, by `tools/sdk/defaults.py`.
- `nulls`: an empty value differs from one that is left out (terraform-plugin-framework; not in SDK 2).
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import each


@dataclass(frozen=True)
class Changes:
    """The facts of one type; those of a type that no source describes are not `known`."""

    replace: tuple[str, ...] = ()
    replace_lower: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    computed: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    sets: frozenset[str] = frozenset()
    alike: Mapping[str, str] = field(default_factory=dict)
    """Property path -> kind of equality."""
    nulls: bool = False
    known: bool = True

    def fill(self, path: str, inputs: Properties) -> Any:
        """The value that the cloud fills in beside these inputs; None where it is not known.

        One under a condition is `{"is": VALUE, "where": {PATH: [LIST, ...]}}`, with the values of each path.
        """
        value = self.filled.get(path)
        if not isinstance(value, Mapping):
            return value
        rows = value["where"].items()
        holds = all([one for _, one in each(inputs, other)] in lists for other, lists in rows)
        return value["is"] if holds else None


UNKNOWN_CHANGES = Changes(nulls=True, known=False)


class ChangeFacts:
    """The facts of one package; a type's line is parsed on first use."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._found: dict[str, Changes] = {}

    @property
    def tokens(self) -> list[str]:
        """The types of the file, without the package."""
        return list(self.lines)

    @property
    def source(self) -> str:
        """The repository, commit and date that the facts are read from."""
        head = json.loads(
            self.file.open(encoding="utf-8").readline().rstrip().rpartition(', "types"')[0] + "}"
        )
        return f"{head['source']}@{head['commit'][:8]} ({head['date']})"

    def terraform(self, token: str) -> str:
        """The name of a type in Terraform's provider."""
        return str(json.loads(self.lines[token])["terraform"])

    def of(self, token: str) -> Changes:
        """The facts of a type, such as `ec2/keyPair:KeyPair`."""
        if token not in self._found:
            line = self.lines.get(token)
            self._found[token] = (
                UNKNOWN_CHANGES if line is None else _parse(json.loads(line), self._filled.get(token, {}))
            )
        return self._found[token]

    @functools.cached_property
    def _filled(self) -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, dict[str, Any]] = json.loads(self.file.with_name("filled.json").read_text())["types"]
        return found

    @functools.cached_property
    def lines(self) -> dict[str, str]:
        """Type -> its facts in JSON."""
        rows = (line.partition('": ') for line in self.file.read_text(encoding="utf-8").splitlines()[1:-1])
        return {token[1:]: facts.removesuffix(",") for token, _, facts in rows}


def _parse(data: Mapping[str, Any], filled: Mapping[str, Any]) -> Changes:
    return Changes(
        replace=tuple(data.get("replace", ())),
        replace_lower=tuple(data.get("replace_lower", ())),
        may=tuple(data.get("may", ())),
        computed=frozenset(data.get("computed", ())),
        defaults=data.get("defaults", {}),
        filled=filled,
        sets=frozenset(data.get("sets", ())),
        alike={path: kind for kind, paths in data.get("alike", {}).items() for path in paths},
        nulls=data.get("nulls", False),
    )
