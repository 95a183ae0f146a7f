"""Every rule of the book: one accepted object, and one that is refused at a stated path."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.discovery import modules
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import EKS_CLUSTER, PACKAGE, KubeCluster
from rehearsal.kubernetes.rules import BOOK, alone, around
from rehearsal.kubernetes.rules.book import SERVICE
from rehearsal.kubernetes.rules.objects.kueue import QUEUE
from tests.rehearsal.kubernetes.rules.building import Example, but
from tests.rehearsal.kubernetes.rules.examples import custom
from tests.rehearsal.kubernetes.rules.examples.objects import WEB

EXAMPLES: list[Example] = [
    one for module in modules("tests.rehearsal.kubernetes.rules.examples") for one in module.EXAMPLES
]
# Its accepted and its refused object are the same: what differs is the cluster.
ABOUT_THE_CLUSTER = {"K8S-CRD-003", "K8S-NAME-003"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubeCluster]:
    state = State(tmp_path / "state.sqlite")
    outputs = {"name": "dev", "arn": "arn:aws:eks:eu-central-1:1:cluster/dev", "endpoint": "https://e"}
    record = state.insert(
        package="aws", type=EKS_CLUSTER, scope="1/eu-central-1", id="dev", urn="u", name="dev", inputs={},
        outputs=outputs,
    )  # fmt: skip
    yield KubeCluster(state, record)
    state.close()


def furnish(cluster: KubeCluster, token: str, inputs: Properties) -> None:
    metadata = inputs.get("metadata") or {}
    name = str(metadata.get("name") or inputs.get("name"))
    cluster.state.insert(
        package=PACKAGE, type=token, scope=cluster.scope, id=f"{metadata.get('namespace')}/{name}", urn="u",
        name=name, inputs=inputs, outputs={**inputs, "metadata": metadata},
    )  # fmt: skip


def broken(cluster: KubeCluster, example: Example, inputs: Properties) -> list[tuple[str, str]]:
    found = [
        *alone(example.token, inputs, custom=example.custom),
        *around(example.token, inputs, cluster, custom=example.custom),
    ]
    return [(rule.id, violation.path) for rule, violation in found]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_a_rule_accepts_and_refuses(cluster: KubeCluster, example: Example) -> None:
    for token, inputs in example.world:
        furnish(cluster, token, inputs)
    assert broken(cluster, example, example.accepted) == []
    assert broken(cluster, example, example.refused) == [(example.rule, example.path)]


def test_every_rule_has_an_example_a_summary_and_a_source() -> None:
    assert Counter(example.rule for example in EXAMPLES) == dict.fromkeys(
        set(BOOK.rules) - ABOUT_THE_CLUSTER, 1
    )
    assert all(rule.summary and rule.source for rule in BOOK.rules.values())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_what_is_not_known_yet_breaks_nothing(cluster: KubeCluster, example: Example) -> None:
    for token, inputs in example.world:
        furnish(cluster, token, inputs)
    for inputs in hidden(example.accepted):
        assert broken(cluster, example, inputs) == []


def hidden(value: Any) -> Iterator[Any]:
    """Copies of an object, each with one unknown value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        for other in (UNKNOWN, *hidden(item)):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = other
            yield copy


def test_a_custom_kind_is_served_in_its_version_or_refused(cluster: KubeCluster) -> None:
    def refusals(token: str) -> list[tuple[str, str, str]]:
        found = around(token, custom.queue(), cluster, custom=True)
        return [(rule.id, violation.code, violation.fix) for rule, violation in found]

    assert [row[:2] for row in refusals(QUEUE)] == [("K8S-CRD-003", "NoMatch")]
    furnish(cluster, *custom.KUEUE)
    assert refusals(QUEUE) == []
    ((rule, _, fix),) = refusals(QUEUE.replace("v1beta2", "v1"))
    assert rule == "K8S-CRD-003"
    assert "kueue.x-k8s.io/v1beta1, kueue.x-k8s.io/v1beta2" in fix


@pytest.mark.parametrize(("version", "accepted"), [("1.35", False), ("1.36", True), ("1.37", True)])
def test_rules_know_the_version_of_the_cluster(cluster: KubeCluster, version: str, accepted: bool) -> None:
    record = cluster.record
    newer = replace(record, outputs={**record.outputs, "version": version})
    found = around(SERVICE, but(WEB, {"metadata.name": "1st"}), KubeCluster(cluster.state, newer))
    assert [rule.id for rule, _ in found] == ([] if accepted else ["K8S-NAME-003"])
