"""Limits of single values: ranges, patterns, lists of allowed values, lengths. One row of TOML is one rule.

A row has `id`, `types` (without the package), `paths` (without indices: they cover every item of a list on
the way; `[]` at the end stands for the items of the last one), `source` (or the file has one), and one or
more of `least`/`most` (numbers), `values` (allowed ones), `pattern` (of the whole text; `form` names it) and
`longest` (characters of a text, items of a list or map). `blank`: an empty text is the same as no value;
`zero`: so is 0. `when`, `unless`, `given` and `usual` are conditions, as in `combinations`.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.combinations import applies
from rehearsal.core.rules.model import Book, Rule, Violation

_Row = Mapping[str, Any]


def add_limits(book: Book[Any], package: str, folder: Path) -> None:
    """Put a rule for every row of the files of a folder into a book."""
    for file in sorted(folder.glob("*.toml")):
        content = tomllib.loads(file.read_text())
        usual = {name: content[name] for name in ("source", "blank") if name in content}
        for own in content["limit"]:
            row = {**usual, **own}
            types = tuple(f"{package}:{token}" for token in row["types"])
            book.add(Rule(row["id"], types, _summary(row), row["source"], alone=_check(row)))


def _check(row: _Row) -> Callable[[Properties], Iterator[Violation]]:
    def check(inputs: Properties) -> Iterator[Violation]:
        for path in row["paths"] if applies(row, inputs, unknown=False) else ():
            for here, value in each(inputs, path):
                unset = (value == "" and row.get("blank")) or (value == 0 and row.get("zero"))
                problem = None if unset else _problem(row, value)
                if problem:
                    yield Violation(here, problem, row.get("fix", ""))

    return check


def _problem(row: _Row, value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not row.get("least", value) <= value <= row.get("most", value):
        return f"{value} is not {_range(row)}"
    if "values" in row and value not in row["values"]:
        return f"{value} is not one of {', '.join(map(str, row['values']))}"
    if "pattern" in row and isinstance(value, str) and not re.fullmatch(row["pattern"], value):
        return f"{value} is not a valid {row['form']}"
    if "longest" in row and isinstance(value, str | list | dict) and len(value) > row["longest"]:
        unit = "characters" if isinstance(value, str) else "items"
        return f"it has {len(value)} {unit}, but at most {row['longest']} are allowed"
    return None


def _range(row: _Row) -> str:
    if "most" not in row:
        return f"at least {row['least']}"
    return f"between {row['least']} and {row['most']}" if "least" in row else f"at most {row['most']}"


def _summary(row: _Row) -> str:
    where = ", ".join(row["paths"])
    if "values" in row:
        return f"{where} is one of {', '.join(map(str, row['values']))}."
    if "pattern" in row:
        return f"{where} is a valid {row['form']}."
    if "longest" in row:
        return f"{where} has at most {row['longest']} characters or items."
    return f"{where} is {_range(row)}."
