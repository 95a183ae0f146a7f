"""Age of the facts: sources that are older than their table allows."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from infra.catalog.tables import CatalogError, parsed

_TABLES = Path(__file__).parent


class OldSource(NamedTuple):
    """A source whose facts should be checked anew."""

    table: str
    """Path of the table below `infra/catalog`."""
    source: str
    """Key of the source in the table."""
    date: datetime.date
    good_for_days: int
    """Of the source, else of the table."""
    rows: int
    """Facts of the table that rest on it."""


def old_sources(on: datetime.date, folder: Path = _TABLES) -> Iterator[OldSource]:
    """Sources that are too old on a day, table by table. Raises CatalogError for a table without an age."""
    for path in sorted(folder.glob("*/tables/*.toml")):
        content, table = parsed(path), str(path.relative_to(folder))
        if not isinstance(most := content.get("good_for_days"), int):
            raise CatalogError(f"{table}: says not for how many days its facts are good (good_for_days)")
        facts = [row["source"] for rows in content.values() if isinstance(rows, list) for row in rows]
        for key, source in content.get("sources", {}).items():
            days = source.get("good_for_days", most)
            if (on - source["date"]).days > days:
                yield OldSource(table, key, source["date"], days, facts.count(key))
