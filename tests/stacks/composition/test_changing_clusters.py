"""Changes of a large stack: which of its stacks they concern, and what the manager has before and after."""

from collections.abc import Callable
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec import StackSpec
from infra.stackspec.layouts import LargeLayout
from infra.stackspec.several.derived import digest, workers
from tests.components.graph import Graph
from tests.stacks.composition.large import AWS, GOOGLE, Large

# Objects of the manager that list its clusters or their pools. All others are the same before and after.
LISTS = {
    "MultiKueueConfig", "ClusterQueue", "Cohort", "ClusterRole", "Deployment", "Job", "ConfigMap",
    "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy", "Budget", "RolePolicy",
}  # fmt: skip


def digests(spec: StackSpec) -> dict[str, str]:
    assert isinstance(spec.layout, LargeLayout)
    return {name: digest(one) for name, one in workers(spec, spec.layout).items()}


def changed(spec: StackSpec, change: Callable[[Any], object]) -> StackSpec:
    """The spec after a change of its values."""
    values = spec.model_dump(mode="json")
    change(values)
    return StackSpec.model_validate(values)


def _grown(values: Any) -> None:
    values["layout"]["clusters"][0]["pools"][0]["max_nodes"] += 1


def _of_budget(values: Any) -> None:
    values["teams"][0].update(monthly_usd=1000, over_budget="stop")


@pytest.mark.parametrize("stack", ["large-aws", "large-gcp", "large-mixed"])
@pytest.mark.parametrize(
    ("change", "concerned"), [(_grown, 1), (_of_budget, 0)], ids=["pool grown", "budget of a team"]
)
def test_a_change_concerns_the_stacks_whose_part_of_the_spec_it_is(
    stack: str, change: Callable[[Any], object], concerned: int
) -> None:
    spec = stackspec.load_file(stack).spec
    before, after = digests(spec), digests(changed(spec, change))
    assert [before[name] == after[name] for name in before] == [at >= concerned for at in range(len(before))]


@pytest.mark.parametrize("large", [AWS, GOOGLE], ids=lambda one: one.stack)
def test_a_cluster_that_leaves_or_joins_changes_lists_and_nothing_of_the_others(large: Large) -> None:
    spec = stackspec.load_file(large.stack).spec
    # The rules ask for an end of guarantees that no cluster gives any more; teams are no part of this.
    less = changed(spec, lambda values: values["layout"]["clusters"].pop())
    assert digests(less).items() < digests(spec).items(), "no other cluster needs an `up`"
    (gone,) = digests(spec).keys() - digests(less).keys()
    both, own = _resources(large.whole()), _resources(large.manager(large.deployed(), less))
    assert own.keys() < both.keys()
    assert not any(gone in key for key in own)
    differ = sorted(key for key in own if own[key] != both[key])
    assert {key.partition("|")[0].rpartition(":")[2] for key in differ} <= LISTS, differ


def _resources(graph: Graph) -> dict[str, Any]:
    return {f"{asked.type}|{asked.name}": asked.properties for asked in graph.cloud.asked}
