"""Disagreements of the emulated providers with a judge, each with the reason why one of them is right.

`disagreements.toml` has one row for properties of a type: whether `ours` or `theirs` is right, why, and the
source.
"""

import functools
import tomllib
from pathlib import Path
from typing import Any

from rehearsal.core.properties import head
from tests.rehearsal.differences.pairs import Pair

FOLDER = Path(__file__).parent


@functools.cache
def rows() -> list[dict[str, Any]]:
    """The rows of the data file."""
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "disagreements.toml").read_text())["row"]
    return found


def of(pair: Pair) -> dict[str, Any] | None:
    """The row that explains a disagreement, or None."""
    for row in rows():
        paths = row["paths"]
        if row["type"] == pair.token and ("*" in paths or pair.path in paths or head(pair.path) in paths):
            return row
    return None
