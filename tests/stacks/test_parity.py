"""Every field of a medium stack's spec does something on each cloud, or is refused with what to do instead.

`parity/rows.py` and `rows_of_clouds.py` are the table: a second value of each field, and where a composed
stack shows it. A field without a row fails here, so that none is read by one cloud and ignored by another.
"""

import copy
import datetime
import functools
import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra import cost, stackspec
from infra.errors import UserError
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.gcp import computed as gcp
from tests.components.graph import Graph, deploy_graph
from tests.stacks.composition.describe import difference
from tests.stacks.parity import rows, rows_of_clouds, rows_of_layouts, rows_of_monitoring, rows_of_windows
from tests.stacks.parity.fields import fields
from tests.stacks.parity.model import Estimated, Honoured, Outcome, Refused
from tests.stacks.stack_files import at

COMMON = {**rows.COMMON, **rows_of_monitoring.COMMON, **rows_of_windows.COMMON, **rows_of_layouts.COMMON}
OWN = {"aws": rows_of_clouds.AWS, "gcp": rows_of_clouds.GCP}
TABLE: dict[str, dict[str, Outcome]] = {
    cloud: {**{field: row[cloud] for field, row in COMMON.items()}, **own} for cloud, own in OWN.items()
}
GIVEN = {**rows.GIVEN, **rows_of_windows.GIVEN, **rows_of_layouts.GIVEN, **rows_of_clouds.GIVEN}
DAY = datetime.date(2026, 11, 25)
# Settings of a stack file that stand beside its spec.
BESIDE = ("name", "region")
_LONGEST = 2000


def of_kind(kind: type[Any]) -> list[tuple[str, str]]:
    return [(cloud, name) for cloud in TABLE for name, row in TABLE[cloud].items() if isinstance(row, kind)]


BATCHES = sorted({(cloud, TABLE[cloud][name].batch) for cloud, name in of_kind(Honoured)})  # type: ignore[union-attr]  # Honoured


def spec_of(cloud: str, *changes: Mapping[str, Any]) -> stackspec.StackSpec:
    source = f"Pulumi.dev-{cloud}.yaml"
    config = read(CONFIG / source, source)["config"]
    values = copy.deepcopy({key.partition(":")[2]: value for key, value in config.items()})
    values["name"] = "dev"
    for path, value in (item for change in changes for item in change.items()):
        at(values if path in BESIDE else values["spec"], path, copy.deepcopy(value))
    return stackspec.load(values.pop("name"), values, source).spec


def in_batch(cloud: str, batch: str) -> dict[str, Honoured]:
    found = TABLE[cloud].items()
    return {name: row for name, row in found if isinstance(row, Honoured) and row.batch == batch}


def changes_of(cloud: str, batch: str) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for row in in_batch(cloud, batch).values():
        for path, value in {row.at: row.value, **row.also}.items():
            assert changes.setdefault(path, value) == value, f"{path} has two values in {batch}"
    return changes


@functools.cache
def lines(cloud: str, batch: str) -> tuple[str, ...]:
    """How the stack differs once the fields of a batch have their second values."""
    given = batch if GIVEN.get(batch, {}).get(cloud) else ""
    now = composed(cloud, GIVEN.get(batch, {}).get(cloud, {}), changes_of(cloud, batch))
    return tuple(difference(before(cloud, given), now, longest=_LONGEST))


@functools.cache
def before(cloud: str, batch: str = "") -> Graph:
    return composed(cloud, GIVEN.get(batch, {}).get(cloud, {}))


def composed(cloud: str, *changes: Mapping[str, Any]) -> Graph:
    spec = spec_of(cloud, *changes)
    return deploy_graph(lambda: compose(spec), {**aws.COMPUTED, **gcp.COMPUTED})


@pytest.mark.parametrize("cloud", TABLE)
def test_every_field_has_a_row_and_every_row_a_field(cloud: str) -> None:
    assert fields(cloud) == set(TABLE[cloud])


@pytest.mark.parametrize(("cloud", "batch"), BATCHES)
def test_what_a_spec_says_is_seen_in_the_stack(cloud: str, batch: str) -> None:
    unseen = [
        f"{name} ({row.seen})"
        for name, row in in_batch(cloud, batch).items()
        if not any(re.search(row.seen, line) for line in lines(cloud, batch))
    ]
    assert unseen == []


@pytest.mark.parametrize(("cloud", "batch"), BATCHES)
def test_and_nothing_else_looks_like_it(cloud: str, batch: str) -> None:
    """Of two fields that show the same line, one could be ignored."""
    changed = {
        other: changes_of(cloud, other).keys() | GIVEN.get(other, {}).get(cloud, {}).keys()
        for owner, other in BATCHES
        if owner == cloud and other != batch
    }
    alike = [
        f"{name} is seen in {other}: {line}"
        for name, row in in_batch(cloud, batch).items()
        for other, paths in changed.items()
        # All names change with the stack's, and some of a stack with its region.
        if row.at not in paths and other not in ("name", "region")
        for line in lines(cloud, other)
        if re.search(row.seen, line)
    ]
    assert alike == []


@pytest.mark.parametrize(("cloud", "field"), of_kind(Refused))
def test_what_a_cloud_cannot_do_is_refused_with_what_it_can(cloud: str, field: str) -> None:
    row = TABLE[cloud][field]
    assert isinstance(row, Refused)
    with pytest.raises(UserError) as refused:
        spec_of(cloud, {row.at: row.value, **row.also})
    (problem,) = refused.value.problems
    assert problem.path == row.path
    assert problem.rule and re.search(row.instead, problem.fix), problem.fix


@pytest.mark.parametrize(("cloud", "field"), of_kind(Estimated))
def test_what_only_the_estimate_reads_changes_the_estimate_alone(cloud: str, field: str) -> None:
    row = TABLE[cloud][field]
    assert isinstance(row, Estimated) and row.why
    change = {row.at: row.value}
    was, now = (cost.estimate(spec, DAY).items for spec in (spec_of(cloud), spec_of(cloud, change)))
    assert was != now
    assert difference(before(cloud), composed(cloud, change)) == []
