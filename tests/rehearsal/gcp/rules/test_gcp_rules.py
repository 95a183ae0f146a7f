"""Every rule of Google Cloud accepts one example and refuses another at the stated path."""

from functools import cache
from typing import Any

import pytest

from infra.discovery import gathered
from rehearsal.core.properties import at
from rehearsal.gcp import iam_delay
from rehearsal.gcp.rules import BOOK
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.rules.examples.jobs import sized
from tests.rehearsal.gcp.rules.examples.values import machine, mysql

Example = tuple[str, list[Any], dict[str, Any], dict[str, Any], str]
# Rules with examples; mutations of every fact of the provider are in test_provider.py.
_SSD = ("GCP-VM-008", "scratchDisks")
_LOG = ("GCP-SQL-012", "settings.backupConfiguration.binaryLogEnabled")
RULES = sorted(rule for rule in BOOK.rules if not rule.startswith("GCP-PROVIDER-"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds of examples are older than what IAM takes to apply a grant."""
    monkeypatch.setattr(iam_delay, "DELAY_S", 0.0)


@cache
def examples() -> dict[str, Example]:
    return dict(gathered("tests.rehearsal.gcp.rules.examples", "EXAMPLES"))


def broken(google: Driver, token: str, world: list[Any], inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """(rule, path) of all violations of the inputs in a project with the resources `world`."""
    for kind, name, made in world:
        google.create(kind, name, **made)
    site = google.site(token, inputs)
    found = [*BOOK.broken_alone(f"gcp:{token}", inputs), *BOOK.broken_around(f"gcp:{token}", inputs, site)]
    return [(rule.id, violation.path) for rule, violation in found]


def test_every_rule_has_examples_and_a_source() -> None:
    assert sorted(examples()) == RULES
    assert all(rule.source and rule.summary for rule in BOOK.rules.values())


@pytest.mark.parametrize("id", RULES)
def test_the_accepted_example_breaks_nothing(id: str, google: Driver) -> None:
    token, world, accepted, _, _ = examples()[id]
    assert broken(google, token, world, accepted) == []


@pytest.mark.parametrize("id", RULES)
def test_the_refused_example_breaks_exactly_this_rule(id: str, google: Driver) -> None:
    token, world, _, refused, path = examples()[id]
    assert broken(google, token, world, refused) == [(id, path)]


@pytest.mark.parametrize(
    ("token", "inputs", "found"),
    [
        (
            "cloudrunv2/service:Service",
            sized("3", "4Gi"),
            [("GCP-RUN-010", "template.containers[0].resources.limits.cpu")],
        ),
        ("cloudrunv2/service:Service", sized("0.5", "512Mi"), []),
        ("cloudrunv2/service:Service", sized("6", "24Gi"), []),
        ("compute/instance:Instance", machine("e2-small", scratchDisks=[{"interface": "NVME"}]), [_SSD]),
        ("compute/instance:Instance", machine("n2-standard-4", scratchDisks=[{"interface": "NVME"}]), []),
        ("sql/databaseInstance:DatabaseInstance", mysql(enabled=True), [_LOG]),
    ],
)
def test_sizes_disks_and_logs_of_other_values(
    token: str, inputs: dict[str, Any], found: list[tuple[str, str]], google: Driver
) -> None:
    assert broken(google, token, [], inputs) == found


def test_values_are_found_in_lists_too(google: Driver) -> None:
    taints = {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    found = broken(google, "container/nodePool:NodePool", [], {"nodeConfig": taints})
    assert found == [("GCP-PROVIDER-google_container_node_pool", "nodeConfig.taints[0].effect")]
    assert at({"nodeConfig": taints}, found[0][1]) == "NoSchedule"
