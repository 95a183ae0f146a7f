"""Every supported pair composes in every variant, and each graph is the one that was reviewed.

`python -m tests.stacks.composition.renew` writes the golden files again after a change that is meant.
"""

import functools

import pytest

from tests.components.graph import Graph
from tests.stacks.composition import files
from tests.stacks.composition.composed import Pair, composed
from tests.stacks.composition.variants import VARIANTS

ALL = [(pair, name) for pair, variants in VARIANTS.items() for name in variants]
# What the program reads from a cloud and never makes there.
PROVIDERS = {"aws": "dev-aws", "kubernetes": "dev-kubernetes"}


@functools.cache
def base(pair: Pair) -> Graph:
    return composed(pair)


@functools.cache
def variant(pair: Pair, name: str) -> Graph:
    return composed(pair, VARIANTS[pair][name])


@pytest.mark.parametrize("pair", VARIANTS, ids="-on-".join)
def test_the_graph_is_the_reviewed_one(pair: Pair) -> None:
    assert files.graph_file(pair).read_text() == files.graph_text(base(pair))


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_the_variant_differs_as_reviewed(pair: Pair, name: str) -> None:
    assert files.variant_file(pair, name).read_text() == files.variant_text(base(pair), variant(pair, name))


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_each_resource_has_the_provider_of_its_cloud_and_waits_for_no_circle(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    for asked in graph.cloud.asked:
        cloud = asked.type.partition(":")[0]
        if cloud in PROVIDERS:
            assert asked.provider.split("::")[-2] == PROVIDERS[cloud], asked.name
    assert [name for name in graph.edges if name in graph.waits_for(name)] == []


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_what_the_webhooks_of_kueue_look_at_comes_after_they_answer(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    looked_at = [
        f"{asked.type.rpartition(':')[2]}:{asked.name}"
        for asked in graph.cloud.asked
        if "kueue.x-k8s.io" in asked.type
        or (":batch/v1:" in asked.type and asked.properties["metadata"]["namespace"] == "trainstack-smoke")
    ]
    assert {found.partition(":")[0] for found in looked_at} >= {"ResourceFlavor", "ClusterQueue"}
    for found in looked_at:
        assert "Job:dev-queueing-kueue-ready" in graph.waits_for(found)


def test_no_file_is_left_of_a_variant_that_is_gone() -> None:
    expected = {files.graph_file(pair) for pair in VARIANTS} | {files.variant_file(*each) for each in ALL}
    assert set(files.FOLDER.iterdir()) == expected
