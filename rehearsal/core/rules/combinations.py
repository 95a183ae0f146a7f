"""Properties that need or exclude each other. One row of TOML is one rule.

A row has `id`, `types` (without the package), `rule` (its summary), `source`, `problem` (text with `{name}`:
the property at fault, `{first}`: the first one given, `{property}`: its value), maybe `fix` and `code`, and

- conditions, which must all hold: `when` (path -> value or list of values), `unless` (the same; it holds for
  other known values), `given` (paths of properties that are set). `usual` has the defaults of the service;
- one demand on paths: `needs` (each is set), `excludes` (none is), `some` (at least one is), `exactly_one`,
  `at_most_one`. `path` is where the violation is reported, by default the property at fault.

`within` evaluates conditions and demand for every object at a path. Empty, zero and false are not set.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, each, known
from rehearsal.core.rules.model import Book, Rule, Violation

_Row = Mapping[str, Any]


def add_combinations(book: Book[Any], package: str, folder: Path, *, unknown_conflicts: bool) -> None:
    """Put a rule for every row of the files of a folder into a book.

    With `unknown_conflicts`, a value that a preview does not know yet is a given one that excludes others.
    """
    for file in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(file.read_text())["combination"]:
            types = tuple(f"{package}:{token}" for token in row["types"])
            book.add(Rule(row["id"], types, row["rule"], row["source"], alone=_check(row, unknown_conflicts)))


def _check(row: _Row, unknown: bool) -> Callable[[Properties], Iterator[Violation]]:
    def check(inputs: Properties) -> Iterator[Violation]:
        for place, item in each(inputs, row["within"]) if "within" in row else (("", inputs),):
            if not isinstance(item, Mapping) or not applies(row, item, unknown):
                continue
            for name in _faults(row, item, unknown):
                first = next(iter(_given(row.get("at_most_one", ()), item, unknown)), "")
                words = {**row.get("usual", {}), **item, "name": name, "first": first}
                path = ".".join(part for part in (place, row.get("path", name)) if part)
                fix = row.get("fix", "").format_map(words)
                yield Violation(path, row["problem"].format_map(words), fix, row.get("code", ""))

    return check


def applies(row: _Row, item: Mapping[str, Any], unknown: bool) -> bool:
    """The conditions of a row hold for an object; with `unknown`, an unknown value is a given one."""

    def value(path: str) -> Any:
        found = at(item, path)
        return row.get("usual", {}).get(path) if found is None else found

    return (
        all(value(path) in _many(wanted) for path, wanted in row.get("when", {}).items())
        and all(
            known(value(path)) and value(path) not in _many(others)
            for path, others in row.get("unless", {}).items()
        )
        and _given(row.get("given", []), item, unknown) == row.get("given", [])
    )


def _faults(row: _Row, item: Mapping[str, Any], unknown: bool) -> Iterator[str]:
    yield from (path for path in row.get("needs", ()) if not _given([path], item))
    yield from _given(row.get("excludes", ()), item, unknown)
    if "some" in row and not _given(row["some"], item):
        yield row["some"][0]
    if "exactly_one" in row and len(_given(row["exactly_one"], item)) != 1:
        yield ""
    if "at_most_one" in row:
        yield from _given(row["at_most_one"], item, unknown)[1:2]


def _given(paths: Any, item: Mapping[str, Any], unknown: bool = True) -> list[str]:
    return [path for path in paths if at(item, path) or (unknown and at(item, path) is UNKNOWN)]


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
