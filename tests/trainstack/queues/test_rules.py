"""The rules in plain language, compared with the objects of the shipped stacks."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from infra.cost.rates import node_gpus, node_rate
from infra.stackspec import load_file
from infra.stackspec.layouts import ClusterLayout
from stacks.queues import node_pools, queue_objects, runtime_names
from tests.cluster.manifests import manifests
from tests.stacks.composition.composed import FILES, Pair, composed, stack_spec
from tests.stacks.composition.variants import VARIANTS
from trainstack.queues.rules import sections

AWS: Pair = ("medium", "aws")
# Profiles whose jobs Kueue admits.
QUEUED = [pair for pair in FILES if pair[0] in ("small-cluster", "medium")]
KINDS = (
    "Topology", "ResourceFlavor", "AdmissionCheck", "ProvisioningRequestConfig", "WorkloadPriorityClass",
    "Cohort", "ClusterQueue", "LocalQueue",
)  # fmt: skip
Body = dict[str, Any]


def sorted_(bodies: list[Body]) -> list[str]:
    return sorted(json.dumps(body, sort_keys=True) for body in bodies if body["kind"] in KINDS)


@cache
def objects_of(pair: Pair) -> list[Body]:
    """The objects of Kueue that a stack is composed of, in the order in which an API server lists them."""
    found = [body for body in manifests(composed(pair)) if body["kind"] in KINDS]
    return sorted(found, key=lambda body: _key(body["metadata"]))


def _key(about: Body) -> tuple[str, str]:
    return about.get("namespace", ""), about["name"]


@pytest.fixture
def made() -> list[Body]:
    return deepcopy(objects_of(AWS))


@pytest.mark.parametrize("pair", QUEUED)
def test_the_rules_are_derived_from_the_objects_of_up(pair: Pair) -> None:
    found = objects_of(pair)
    assert found and sorted_(queue_objects(stack_spec(pair))) == sorted_(found)


@pytest.mark.parametrize("pair", QUEUED)
def test_the_names_of_runtimes_are_those_of_up(pair: Pair) -> None:
    bodies = manifests(composed(pair))
    made = {body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterTrainingRuntime"}
    assert made and runtime_names(stack_spec(pair)) == made


def rules_of(bodies: list[Body]) -> str:
    found = sections(bodies, [team.name for team in stack_spec(AWS).teams])
    return "\n".join(f"- {sentence}" for _, sentences in found for sentence in sentences)


def test_every_guarantee_of_the_spec_has_a_rule(made: list[Body]) -> None:
    text = rules_of(made)
    for team in stack_spec(AWS).teams:
        (line,) = [line for line in text.splitlines() if f"- {team.name} is guaranteed" in line]
        for pool, gpus in team.gpus.items():
            assert (f"{gpus} GPUs of {pool}" in line) == (gpus > 0)
    # Four nodes with eight GPUs: two teams have eight each, the rest is the validation's.
    for fact in (
        "owns 16 GPUs", "Applied ML 1, Research 2, Vision 1", "order: cpu, l4", "/queue-name: a100",
        "production, default, sweep, validation, background", "priority background",
    ):  # fmt: skip
        assert fact in text


def of_teams(spec: Body) -> bool:
    return "trainstack.dev/team" in spec["namespaceSelector"]["matchLabels"]


def preemption(**policies: str) -> Callable[[Body], None]:
    return lambda spec: spec["preemption"].update(policies)


def limited(spec: Body) -> None:
    for group in spec["resourceGroups"]:
        for flavor in group["flavors"]:
            for row in flavor["resources"]:
                row["borrowingLimit"] = "0"


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("any idle capacity", limited),
        ("whatever the priority", preemption(reclaimWithinCohort="LowerPriority")),
        ("loses no job", preemption(reclaimWithinCohort="Never")),
        ("of its own queue", preemption(withinClusterQueue="Never")),
        ("can overtake", lambda spec: spec.update(queueingStrategy="StrictFIFO")),
        ("the first one", lambda spec: spec.pop("flavorFungibility")),
    ],
)
def test_a_sentence_goes_with_the_setting_that_makes_it_true(
    made: list[Body], sentence: str, change: Callable[[Body], object]
) -> None:
    assert sentence in rules_of(made)
    for body in made:
        if body["kind"] == "ClusterQueue" and of_teams(body["spec"]):
            change(body["spec"])
    assert sentence not in rules_of(made)


def test_teams_with_a_stopping_budget_are_listed() -> None:
    def stops(spec: Body) -> None:
        spec["teams"][1] |= {"monthly_gpu_hours": 1000, "over_budget": "stop"}

    text = rules_of(queue_objects(stack_spec(AWS, stops)))
    assert "Jobs of Vision" in text and "budget of the month" in text
    assert "requested at once" not in text


def test_a_pool_with_queued_provisioning_has_a_rule() -> None:
    pair: Pair = ("medium", "gcp")
    text = rules_of(queue_objects(stack_spec(pair, VARIANTS[pair]["queued"])))
    assert "requested at once" in text


def test_a_validation_that_drains_has_a_rule() -> None:
    def drains(spec: Body) -> None:
        spec["smoke"]["drain"] = True

    text = rules_of(queue_objects(stack_spec(AWS, drains)))
    assert "of a100 preempts" in text and "waits for jobs" not in text


def test_without_a_validation_there_is_no_rule() -> None:
    def off(spec: Body) -> None:
        spec["smoke"] |= {"enabled": False, "schedule": None}

    text = rules_of(queue_objects(stack_spec(AWS, off)))
    assert "alidation of" not in text and "Scheduled validations" not in text


@pytest.mark.parametrize("stack", ["dev-aws", "dev-gcp", "prod-gcp", "small-eks-aws", "small-gke-gcp"])
def test_gpus_and_price_of_a_node_are_those_that_the_ledger_counts(stack: str) -> None:
    spec = load_file(stack).spec
    assert isinstance(spec.layout, ClusterLayout)
    known = node_pools(spec)
    for pool in spec.layout.pools:
        rate = node_rate(spec, pool)
        assert node_gpus(spec, pool) == known[pool.name].offer["gpus"]
        assert (rate.usd if rate else None) == known[pool.name].usd_per_hour
