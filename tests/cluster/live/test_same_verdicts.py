"""Recorded states as objects of a real API server: a rule has the same verdict about both."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.rules import CATALOG
from policies.sources import state
from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS
from policies.sources.live.queries import AnswerItem, Answers
from policies.sources.live.records import account
from policies.sources.live.snapshot import Snapshot
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.live.rule_verdicts import place, verdicts
from tests.policies.recording.example import rule_of
from tests.policies.recording.recordings import VERDICTS, export, keys, rows
from trainstack.collect.manifests import kept

# What a state has beside objects that rules look at.
BESIDE = ("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "kubernetes:core/v1:Secret")
# Kinds that the control plane here does not serve.
UNSERVED = ("eks.amazonaws.com", "karpenter.sh", "kubeflow.org", "helm.sh")
DIFFERENT = {
    "MLS-REP-04": "only the engine knows when and how a validation ended",
    "MLS-TRK-03": "a cluster has no data about buckets",
}
TYPES = {sort.type(version): sort for sort in OBJECT_KINDS for version in sort.versions}


def examples() -> list[str]:
    """Those that consist of objects which the control plane serves."""
    return [
        key
        for key in keys()
        if all(
            row["type"] in (*TYPES, *BESIDE) and TYPES.get(row["type"], OBJECT_KINDS[0]).group not in UNSERVED
            for verdict in VERDICTS
            for row in rows(key, verdict)
        )
    ]


EXAMPLES = examples()


@pytest.fixture(scope="module")
def _space(api: KubernetesApi) -> Iterator[None]:
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-vision"}}
    api.create(body)
    yield
    api.delete("v1", "Namespace", "team-vision")


def test_examples_are_of_many_rules() -> None:
    assert len({rule_of(key) for key in EXAMPLES}) > 12
    assert {rule_of(key) for key in EXAMPLES} >= DIFFERENT.keys() - {"MLS-TRK-03"}


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("key", [key for key in EXAMPLES if rule_of(key) not in DIFFERENT])
def test_a_rule_has_the_same_verdict_about_objects_and_state(
    api: KubernetesApi, _space: None, key: str, verdict: str, tmp_path: Path
) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(export(key, verdict)))
    managed = [one for one in state.read(file) if one.kind in TYPES]
    made = [row for row in rows(key, verdict) if row["type"] in TYPES]
    collected = account(snapshot(api, made))
    assert {place(one) for one in collected.resources} == {place(one) for one in managed}
    rules = [CATALOG.rules[rule_of(key)]]
    assert verdicts(rules, collected.resources, collected.coverage) == verdicts(rules, managed)


def snapshot(api: KubernetesApi, made: list[Any]) -> Snapshot:
    """The snapshot of a collector: the server fills in its defaults and stores nothing."""
    answers: dict[str, Answers] = {sort.query: Answers() for sort in OBJECT_KINDS}
    for row in made:
        _, version, kind = row["type"].split(":")
        body = {**row["inputs"], "apiVersion": version.removeprefix("core/"), "kind": kind}
        body = {key: value for key, value in body.items() if not key.startswith("__")}
        filled = api.apply(body, dry_run=True, manager="pulumi-kubernetes-0123abcd")
        question = TYPES[row["type"]].query
        answers[question] = Answers((*answers[question].items, AnswerItem(kept(filled))))
    return Snapshot("kubernetes", "cluster", "https://example.com", "2026-11-24T00:00:00Z", answers)
