"""Sources of facts that are older than their table allows: a report, never a failing test."""

import datetime
from pathlib import Path

import pytest

from infra.catalog.ages import old_sources
from infra.catalog.tables import CatalogError

TABLE = """
good_for_days = 30
[sources.page]
text = "a page"
date = 2026-01-01
[sources.price-list]
text = "a price list"
date = 2026-01-01
good_for_days = 365
[[row]]
source = "page"
[[row]]
source = "page"
[[price]]
source = "price-list"
"""


def written(folder: Path, text: str) -> Path:
    table = folder / "aws" / "tables" / "facts.toml"
    table.parent.mkdir(parents=True)
    table.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("day", "old"),
    [
        (datetime.date(2026, 1, 31), {}),
        (datetime.date(2026, 2, 1), {"page": 2}),
        (datetime.date(2027, 1, 2), {"page": 2, "price-list": 1}),
    ],
)
def test_a_source_is_old_after_its_days_or_those_of_its_table(
    day: datetime.date, old: dict[str, int], tmp_path: Path
) -> None:
    found = [*old_sources(day, written(tmp_path, TABLE))]
    assert {one.source: one.rows for one in found} == old
    assert all(one.table == "aws/tables/facts.toml" for one in found)


def test_a_table_without_an_age_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, TABLE.replace("good_for_days = 30\n", ""))
    with pytest.raises(CatalogError):
        list(old_sources(datetime.date(2026, 1, 31), folder))


def test_every_table_says_how_old_its_rows_may_get() -> None:
    assert {one.table.partition("/")[0] for one in old_sources(datetime.date(2126, 1, 1))} == {
        "aws",
        "gcp",
        "kubernetes",
    }
