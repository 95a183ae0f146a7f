"""Rules about combinations of properties, where a preview does not know a value yet."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN
from rehearsal.core.rules.combinations import add_combinations
from rehearsal.core.rules.model import Book

ROWS = """
[[combination]]
id = "P-X-001"
types = ["t"]
rule = "A excludes b and needs c."
given = ["a"]
excludes = ["b"]
needs = ["c"]
problem = "a is {a}, {name} does not fit"
source = "test"
"""


@pytest.mark.parametrize("conflicts", [True, False])
@pytest.mark.parametrize(
    ("inputs", "found", "unknown"),
    [
        ({"a": 1, "c": 1}, [], []),
        ({"a": 1, "b": 1}, ["c", "b"], ["c", "b"]),
        ({"a": 1, "b": UNKNOWN, "c": UNKNOWN}, ["b"], []),
        ({"a": UNKNOWN}, ["c"], []),
        ({"a": 0, "b": 1}, [], []),
    ],
)
def test_an_unknown_value_satisfies_a_need_and_conflicts_where_it_counts(
    tmp_path: Path, inputs: dict[str, Any], found: list[str], unknown: list[str], conflicts: bool
) -> None:
    (tmp_path / "rows.toml").write_text(ROWS)
    book: Book[None] = Book("P")
    add_combinations(book, "p", tmp_path, unknown_conflicts=conflicts)
    paths = [violation.path for _, violation in book.broken_alone("p:t", inputs)]
    assert paths == (found if conflicts else unknown)
