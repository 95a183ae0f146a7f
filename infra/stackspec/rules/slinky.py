"""Rules of Slurm in a Kubernetes cluster (`SlinkySpec`), on every cloud."""

from collections.abc import Iterator
from typing import Final, get_args

from infra.errors import Problem
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.unions import arms

OLDEST: Final = (25, 11)
"""The first release with what slurm-operator asks of Slurm (its system requirements, 1.1)."""
_MOST_NODES: Final = 1024
"""`MaxNodeCount` that the operator writes into slurm.conf (v1.1.0 controllerbuilder/controller_config.go)."""

_FEATURES: Final = frozenset(
    [*get_args(PoolSpec.model_fields["purpose"].annotation), *arms(PoolSpec.model_fields["purchase"])]
)
"""Features that nodes of other pools may have, beside their machine type (`infra.slurm.conf`). The operator
takes every node with the feature <pool> for one of the pool (v1.1.0 controllerbuilder/controller_config.go,
`buildNodeSetConf`)."""


def problems(layout: SlurmLayout) -> Iterator[Problem]:
    """Version, sizes and times that slurm-operator has not."""
    year, month = (int(part) for part in layout.slurm_version.split(".")[:2])
    if (year, month) < OLDEST:
        rule, fix = "slurm-operator needs Slurm 25.11 or newer", "Write 25.11, and images of it."
        yield Problem("layout.slurm_version", layout.slurm_version, rule, fix, code="slinky-slurm-too-old")
    if layout.idle_minutes is not None:
        rule = "nodes of slurm-operator do not end when they are idle"
        fix = "Set null: the pods of a NodeSet, and with them its nodes, always run."
        yield Problem("layout.idle_minutes", layout.idle_minutes, rule, fix, code="slinky-nodes-stay")
    for index, pool in enumerate(layout.pools):
        if pool.name in _FEATURES:
            rule = (
                f"slurm-operator would give its partition the nodes of all pools with the feature {pool.name}"
            )
            fix = "Rename the pool: not a purpose, and not a kind of purchase."
            path = f"layout.pools[{index}].name"
            yield Problem(path, pool.name, rule, fix, code="slinky-name-of-feature")
        if pool.min_nodes != pool.max_nodes:
            rule = f"slurm-operator starts no nodes for waiting jobs, and max_nodes is {pool.max_nodes}"
            fix = "Write the same number for both; a deployment changes it."
            path = f"layout.pools[{index}].min_nodes"
            yield Problem(path, pool.min_nodes, rule, fix, code="slinky-fixed-size")
    nodes = sum(pool.max_nodes for pool in layout.pools)
    if nodes > _MOST_NODES:
        rule = f"slurm-operator allows {_MOST_NODES} nodes in all"
        yield Problem(
            "layout.pools", nodes, rule, "Use fewer nodes, or AWS PCS.", code="slinky-too-many-nodes"
        )
