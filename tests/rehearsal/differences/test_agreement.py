"""The effect of a change is what a judge says that the rules of the emulated provider were not made from."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rehearsal.aws.table import TABLE as AWS
from rehearsal.core.emulation.columns import covers
from rehearsal.core.emulation.table import Table
from rehearsal.core.schema import Schemas
from rehearsal.gcp.table import TABLE as GCP
from tests.rehearsal.aws import harness as aws
from tests.rehearsal.differences import arguments, pairs
from tests.rehearsal.driver import CACHE, Driver
from tests.rehearsal.gcp import harness as gcp

DRIVERS: dict[str, Callable[[Path, Schemas], Driver]] = {"aws": aws.Driver, "gcp": gcp.Driver}
LEAST = {"aws": (60, 600), "gcp": (40, 600)}


@pytest.fixture(params=DRIVERS)
def judged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Driver, Schemas]]:
    schemas = Schemas(request.param, CACHE)
    yield DRIVERS[request.param](tmp_path, schemas), schemas
    schemas.close()


def test_a_change_has_the_effect_that_the_judge_says(judged: tuple[Driver, Schemas]) -> None:
    driver, schemas = judged
    _, found = pairs.read(arguments.FOLDER / f"{driver.package}.json")
    types, least = LEAST[driver.package]
    assert len(found) >= least and len({one.token for one in found}) >= types
    apart = []
    for one in found:
        schema = schemas.resource(f"{driver.package}:{one.token}")
        assert schema is not None, one
        ours, _ = pairs.verdict(driver, schema, one)
        if ours != one.verdict and not (ours == "may" and one.verdict != "none"):
            apart.append((one, ours))
    unexplained = [pair for pair in apart if arguments.of(pair[0]) is None]
    assert unexplained == []
    assert len(apart) <= 0.02 * len(found)


def test_every_explanation_is_of_a_pair_and_has_a_reason() -> None:
    known = {one.token for package in DRIVERS for one in pairs.read(arguments.FOLDER / f"{package}.json")[1]}
    for row in arguments.rows():
        assert row["type"] in known and row["right"] in ("ours", "theirs") and row["why"] and row["source"], (
            row
        )


@pytest.mark.parametrize("table", [AWS, GCP], ids=["aws", "gcp"])
def test_a_column_of_a_table_says_what_the_facts_do_not(table: Table) -> None:
    for row in table.rows.values():
        listed = [] if "*" in row.replace or not row.changes.known else row.replace
        said = [one for one in listed if covers(row.changes.replace, one) and not row.decides(one)]
        assert said == [], row.token
