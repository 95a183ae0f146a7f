"""Rules of the times at which jobs may use a pool."""

import copy
from typing import Any

import pytest

from components.kubernetes.queueing.kueue import BACKGROUND, PRIORITIES, VALIDATION
from infra import stackspec
from infra.stackspec.layouts import HoursSpec
from tests.infra.stackspec.stack_files import Values, paths

BLOCK = {
    "kind": "block",
    "id": "cr-0123456789abcdef0",
    "starts": "2026-12-01T11:30:00Z",
    "ends": "2026-12-08T11:30:00Z",
}
HOURS = {"days": ["SA", "SU"], "start": "20:00", "hours": 10, "classes": ["sweep"]}


@pytest.fixture
def block(values: Values) -> Values:
    """A stack with a pool on a block, in whose nights sweeps run, and one that is always open."""
    pools = values["spec"]["layout"]["pools"]
    always = {**copy.deepcopy(pools[0]), "name": "always"}
    changes = {"machine": "p5.48xlarge", "purchase": dict(BLOCK), "hours": dict(HOURS), "own_queue": True}
    pools[:] = [{**pools[0], **changes}, always]
    return values


def test_times_and_hours_are_accepted(block: Values) -> None:
    stackspec.load("dev", block, "f")


@pytest.mark.parametrize(
    ("at", "value", "path"),
    [
        ("purchase.ends", None, "purchase.ends"),
        ("purchase.starts", None, "purchase.starts"),
        ("purchase.ends", "2026-02-30T00:00:00Z", "purchase.ends"),
        ("purchase.ends", "2026-12-08 11:30", "purchase.ends"),
        # Its last 40 minutes are for leaving the nodes.
        ("purchase.ends", "2026-12-01T12:10:00Z", "purchase.ends"),
        ("min_nodes", 1, "min_nodes"),
        ("own_queue", False, "own_queue"),
        ("hours.days", [], "hours.days"),
        ("hours.start", "24:00", "hours.start"),
        ("hours.hours", 24, "hours.hours"),
        ("hours.classes", ["background"], "hours.classes[0]"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(block: Values, at: str, value: Any, path: str) -> None:
    place: Any = block["spec"]["layout"]["pools"][0]
    *steps, last = at.split(".")
    for step in steps:
        place = place[step]
    place[last] = value
    assert f"layout.pools[0].{path}" in paths(block)


def test_a_block_is_a_little_longer_where_machines_end_with_it(block: Values) -> None:
    bought = block["spec"]["layout"]["pools"][0]["purchase"]
    bought["ends"] = "2026-12-01T12:11:00Z"
    stackspec.load("dev", block, "f")


def test_the_classes_are_those_of_the_queue_that_people_use() -> None:
    annotation = HoursSpec.model_fields["classes"].annotation
    known = {each.name for each in PRIORITIES} - {VALIDATION, BACKGROUND}
    assert all(name in repr(annotation) for name in known)
