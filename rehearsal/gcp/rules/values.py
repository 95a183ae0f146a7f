"""Words and numbers that the provider documents, for every type that has some: rows in `values.toml`."""

import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import walk
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.core.rules.tables import without_indices
from rehearsal.gcp.rules.book import BOOK

_FILE = Path(__file__).with_name("values.toml")


@functools.cache
def _file() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text())


def tables() -> Mapping[str, Any]:
    """Type (without `gcp:`) -> `words` and `numbers`, each by property path."""
    return {token: table for token, table in _file().items() if isinstance(table, dict)}


def _words(token: str, inputs: Properties) -> Iterator[Violation]:
    words = _file()[token].get("words", {})
    for path, value in walk(inputs):
        listed = words.get(without_indices(path))
        if listed and isinstance(value, str) and value and value not in listed:
            yield Violation(path, f"{value!r} is not one of {', '.join(listed)}")


def _numbers(token: str, inputs: Properties) -> Iterator[Violation]:
    numbers = _file()[token].get("numbers", {})
    for path, value in walk(inputs):
        bounds = numbers.get(without_indices(path))
        if not bounds or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least, most = bounds[0], bounds[1] if len(bounds) > 1 else None
        if value < least or (most is not None and value > most):
            span = f"at least {least}" if most is None else f"between {least} and {most}"
            yield Violation(path, f"{value:g} must be {span}")


def _add() -> None:
    """One rule per type and kind of row: the type tells which rows a resource is held against."""
    source = str(_file()["source"])
    for token, table in tables().items():
        kind = token.rpartition(":")[0].replace("/", "-").upper()
        for number, (name, check) in enumerate((("words", _words), ("numbers", _numbers)), start=1):
            if name in table:
                summary = f"{name.capitalize()} of {token} are those that the provider documents."
                alone = functools.partial(check, token)
                BOOK.add(Rule(f"GCP-VALUE-{kind}-{number}", (f"gcp:{token}",), summary, source, alone=alone))


_add()
