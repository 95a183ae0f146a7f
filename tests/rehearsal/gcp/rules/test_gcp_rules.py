"""Every rule of Google Cloud accepts one example and refuses another at the stated path."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.discovery import gathered
from rehearsal.core.properties import at
from rehearsal.gcp import rules
from rehearsal.gcp.rules import BOOK
from tests.rehearsal.gcp.harness import Driver

Example = tuple[str, list[Any], dict[str, Any], dict[str, Any], str]
# Types that need something besides the value under test to break no other rule.
NEEDED: dict[str, dict[str, Any]] = {
    "container/cluster:Cluster": {"initialNodeCount": 1},
    "compute/firewall:Firewall": {"allows": [{"protocol": "tcp"}]},
}


@cache
def examples() -> dict[str, Example]:
    found: dict[str, Example] = dict(gathered("tests.rehearsal.gcp.rules.examples", "EXAMPLES"))
    for row in (row for row in limits() if row["id"] not in found):
        token, path = row["types"][0], row["paths"][0]
        is_word = "values" in row
        good, bad = (row["values"][0], "NO_SUCH_WORD") if is_word else (row["least"] + 1, row["least"] - 1)
        base = NEEDED.get(token, {})
        found[row["id"]] = (token, [], {**base, **nested(path, good)}, {**base, **nested(path, bad)}, path)
    return found


def limits() -> Iterator[dict[str, Any]]:
    for file in Path(rules.__file__).parent.glob("limits/*.toml"):
        yield from tomllib.loads(file.read_text())["limit"]


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def broken(google: Driver, token: str, world: list[Any], inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """(rule, path) of all violations of the inputs in a project with the resources `world`."""
    for kind, name, made in world:
        google.create(kind, name, **made)
    site = google.site(token, inputs)
    found = [*BOOK.broken_alone(f"gcp:{token}", inputs), *BOOK.broken_around(f"gcp:{token}", inputs, site)]
    return [(rule.id, violation.path) for rule, violation in found]


def test_every_rule_has_examples_and_a_source() -> None:
    assert examples().keys() == BOOK.rules.keys()
    assert all(rule.source and rule.summary for rule in BOOK.rules.values())
    assert len([key for key in BOOK.rules if "-LIM-" not in key]) >= 40


@pytest.mark.parametrize("id", sorted(BOOK.rules))
def test_the_accepted_example_breaks_nothing(id: str, google: Driver) -> None:
    token, world, accepted, _, _ = examples()[id]
    assert broken(google, token, world, accepted) == []


@pytest.mark.parametrize("id", sorted(BOOK.rules))
def test_the_refused_example_breaks_exactly_this_rule(id: str, google: Driver) -> None:
    token, world, _, refused, path = examples()[id]
    assert broken(google, token, world, refused) == [(id, path)]


def test_values_are_found_in_lists_too(google: Driver) -> None:
    taints = {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    found = broken(google, "container/nodePool:NodePool", [], {"nodeConfig": taints})
    assert found == [("GCP-LIM-118", "nodeConfig.taints[0].effect")]
    assert at({"nodeConfig": taints}, found[0][1]) == "NoSchedule"
