"""Specs and files of the Slurm systems of tests."""

import functools
from collections.abc import Mapping
from typing import Any

from infra import slurm, stackspec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.stack import StackSpec


def spec(stack: str = "dev-aws", pools: Mapping[str, int] | None = None) -> StackSpec:
    """The spec of a shipped stack; `pools` names those that it keeps, with their number of nodes."""
    found = _loaded(stack)
    if pools is None:
        return found
    assert isinstance(found.layout, ClusterLayout)
    kept = tuple(
        one.model_copy(update={"max_nodes": pools[one.name]})
        for one in found.layout.pools
        if one.name in pools
    )
    return found.model_copy(update={"layout": found.layout.model_copy(update={"pools": kept})})


def with_team(given: StackSpec, name: str, /, **changes: Any) -> StackSpec:
    """A spec with another team of the name."""
    teams = tuple(one.model_copy(update=changes) if one.name == name else one for one in given.teams)
    return given.model_copy(update={"teams": teams})


def with_pool(given: StackSpec, name: str, /, **changes: Any) -> StackSpec:
    """A spec with another pool of the name."""
    assert isinstance(given.layout, ClusterLayout)

    def changed(one: PoolSpec) -> PoolSpec:
        return one.model_copy(update=changes) if one.name == name else one

    layout = given.layout.model_copy(update={"pools": tuple(map(changed, given.layout.pools))})
    return given.model_copy(update={"layout": layout})


@functools.cache
def _loaded(stack: str) -> StackSpec:
    return stackspec.load_file(stack).spec


def files_22_05(given: StackSpec, folder: str) -> dict[str, str]:
    """The files for the version of tests, with two nodes below each switch."""
    options = slurm.SystemOptions(controller="login", version="22.05", nodes_per_switch=2, folder=folder)
    return slurm.files(slurm.system(given, options))
