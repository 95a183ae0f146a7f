"""Reads a TOML table of facts into frozen models, or raises with every problem in it.

A file holds `good_for_days`, the days after its date for which a source is trusted (infra/catalog/ages.py),
`[sources.<key>]` tables (`text`, `date`, optionally `dated = "when read"`, and a `good_for_days` of its own,
which every price needs) and one array of tables per kind of row. Every row names its source by key; the
parsed row has the text and date of the source.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from infra.catalog.fact import Fact

Row = TypeVar("Row", bound=Fact)

# A row that names a source gets these from it; a row may state neither itself.
_FROM_SOURCE = ("date", "dated", "good_for_days")


class CatalogError(Exception):
    """The data files themselves are broken: every bad row by file, kind and position."""


def _as_it_is(row: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return (row,)


def read_rows(
    path: Path,
    kind: str,
    model: type[Row],
    expand: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] = _as_it_is,
) -> tuple[Row, ...]:
    """All rows `[[kind]]` of a file, in the file's order; `expand` first unfolds the shorthand of each.

    Raises CatalogError when the file is unreadable, has no such rows, or any row is malformed.
    """
    content = parsed(path)
    raw_rows = content.get(kind)
    if not isinstance(raw_rows, list) or not raw_rows:
        raise CatalogError(f"{path.name}: has no [[{kind}]] rows")
    sources = content.get("sources", {})
    rows: list[Row] = []
    complaints: list[str] = []
    for number, raw in enumerate(raw_rows, start=1):
        where = f"{path.name} [[{kind}]] {number}"
        try:
            rows += [model.model_validate(_with_source(row, sources)) for row in expand(dict(raw))]
        except ValidationError as error:
            complaints += [
                f"{where}: {'.'.join(map(str, e['loc'])) or 'row'}: {e['msg']}" for e in error.errors()
            ]
        except (KeyError, TypeError, ValueError) as error:
            complaints.append(f"{where}: {error.args[0] if error.args else error}")
    if complaints:
        raise CatalogError("\n".join(complaints))
    return tuple(rows)


def read_table(
    path: Path,
    kind: str,
    model: type[Row],
    *columns: str,
    expand: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] = _as_it_is,
) -> Mapping[Any, Row]:
    """The rows of a file by the value of a column, or by the values of several.

    Read-only. Raises CatalogError as `read_rows` does, and for a key that two rows have.
    """
    return by_key(read_rows(path, kind, model, expand), attrgetter(*columns), path.name)


def by_key(rows: Iterable[Row], key: Callable[[Row], Any], table: str) -> Mapping[Any, Row]:
    """A read-only mapping of rows by key. Raises CatalogError for a key that two rows have."""
    mapping: dict[Any, Row] = {}
    doubles = []
    for row in rows:
        if key(row) in mapping:
            doubles.append(f"{table}: {key(row)!r} is listed twice")
        mapping[key(row)] = row
    if doubles:
        raise CatalogError("\n".join(doubles))
    return MappingProxyType(mapping)


def parsed(path: Path) -> dict[str, Any]:
    """The content of a table. Raises CatalogError when it cannot be read or is not TOML."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise CatalogError(f"{path.name}: cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{path.name}: is not TOML: {error}") from error


def _with_source(row: dict[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
    own = [name for name in _FROM_SOURCE if name in row]
    if own:
        raise ValueError(f"{', '.join(own)} belong to the source, not to the row")
    if "source" not in row:
        raise ValueError("names no source")
    source = sources.get(row["source"])
    if source is None:
        raise ValueError(f"source {row['source']!r} is not in [sources]")
    if unknown := set(source) - {"text", *_FROM_SOURCE}:
        raise ValueError(f"source {row['source']!r} has unknown keys: {', '.join(sorted(unknown))}")
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return frozen | {"source": source.get("text")} | {k: source[k] for k in _FROM_SOURCE if k in source}
