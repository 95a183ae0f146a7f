"""Limits of single values: ranges, patterns, lists of allowed values, lengths. One row of TOML is one rule.

A row has `id`, `types` (without `aws:`), `paths` (`[]` stands for every item), `source`, and one or more of
`least`/`most` (numbers), `values` (allowed ones), `pattern` (of the whole text; `form` says it in words),
`longest` (characters of a text, items of a list or map).
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import each, number
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Rule, Violation

_Row = Mapping[str, Any]


def _check(row: _Row) -> Callable[[Properties], Iterator[Violation]]:
    def check(inputs: Properties) -> Iterator[Violation]:
        for path in row["paths"]:
            for here, value in each(inputs, path):
                problem = _problem(row, value)
                if problem:
                    yield Violation(here, problem, row.get("fix", ""))

    return check


def _problem(row: _Row, value: Any) -> str | None:
    size = number(value)
    if size is not None and not row.get("least", size) <= size <= row.get("most", size):
        return f"{value} is not {_range(row)}"
    if "values" in row and value not in row["values"]:
        return f"{value} is not one of {', '.join(map(str, row['values']))}"
    if "pattern" in row and isinstance(value, str) and not re.fullmatch(row["pattern"], value):
        return f"{value} is no valid {row['form']}"
    if "longest" in row and isinstance(value, str | list | dict) and len(value) > row["longest"]:
        unit = "characters" if isinstance(value, str) else "items"
        return f"it has {len(value)} {unit}, but at most {row['longest']} are allowed"
    return None


def _range(row: _Row) -> str:
    if "most" not in row:
        return f"at least {row['least']}"
    return f"between {row['least']} and {row['most']}" if "least" in row else f"at most {row['most']}"


def _read() -> None:
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        for row in tomllib.loads(file.read_text())["limit"]:
            types = tuple(f"aws:{token}" for token in row["types"])
            BOOK.add(Rule(row["id"], types, _summary(row), row["source"], alone=_check(row)))


def _summary(row: _Row) -> str:
    where = ", ".join(row["paths"])
    if "values" in row:
        return f"{where} is one of {', '.join(map(str, row['values']))}."
    if "pattern" in row:
        return f"{where} is a valid {row['form']}."
    if "longest" in row:
        return f"{where} has at most {row['longest']} characters or items."
    return f"{where} is {_range(row)}."


_read()
