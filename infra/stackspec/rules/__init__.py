"""Rules between the parts of a spec: each is a small function that yields problems.

`core` and `checkpoints` hold for every stack, `cluster` and `windows` for those with one cluster, `small` for
those without, `large` for those of several clusters; `parts` lists the fields that only one kind may have.
`aws` and `gcp` hold on that cloud. Facts and limits of a cloud are in the catalog, which the rules call as
components and the rehearsal do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from infra.errors import Problem
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout, SmallLayout
from infra.stackspec.rules import checkpoints, cluster, core, large, parts, slurm, small, windows
from infra.stackspec.rules.aws import cluster as aws
from infra.stackspec.rules.aws import small as small_aws
from infra.stackspec.rules.gcp import cluster as gcp
from infra.stackspec.rules.gcp import slurm as slurm_gcp
from infra.stackspec.rules.gcp import small as small_gcp
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

Check = Callable[[], Iterator[Problem]]
Rule = Callable[..., Iterator[Problem]]


class Rules(NamedTuple):
    """Rules of a layout on a cloud, by what they take besides the spec."""

    of_layout: Sequence[Rule] = ()
    of_cloud: Sequence[Rule] = ()
    of_both: Sequence[Rule] = ()


def _of_clusters(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """The rules of each cluster's own spec."""
    yield from large.of_clusters(spec, layout, broken_rules)


_LARGE = (*large.RULES, _of_clusters)
_CLUSTER = (*cluster.RULES, *windows.RULES, parts.missing)
_NO_SLURM = (slurm.only_with_slurm,)
_NO_DIRECTOR = (slurm_gcp.only_with_slurm,)
_NO_DATABASE = tuple(rule for rule in gcp.RULES if rule is not gcp.database_tier)
# Those that ask only for zones and pools, which a Slurm system has, too.
_SLURM: Sequence[Rule] = (
    cluster.zones_once,
    cluster.zones_of_pools,
    cluster.zone_of_rdma,
    cluster.zone_of_reservation,
    cluster.sizes,
    cluster.validated_pools,
)
_SLURM_AWS: Sequence[Rule] = (
    cluster.guarantees,
    aws.network_range,
    aws.pool_hardware,
    aws.purchases,
    aws.gpus_where_there_are_some,
    aws.shared_file_system,
    windows.blocks,
)
_RULES: Final[Mapping[tuple[type, type], Rules]] = {
    (ClusterLayout, AwsSpec): Rules((*_CLUSTER, *aws.CLUSTER_RULES), aws.RULES, _NO_SLURM),
    (ClusterLayout, GcpSpec): Rules(_CLUSTER, gcp.RULES, (*gcp.CLUSTER_RULES, *_NO_DIRECTOR)),
    (LargeLayout, AwsSpec): Rules(_LARGE),
    (LargeLayout, GcpSpec): Rules(_LARGE),
    (SmallLayout, AwsSpec): Rules((*small.RULES, *small_aws.RULES), aws.RULES, _NO_SLURM),
    (SlurmLayout, AwsSpec): Rules(
        (*_SLURM, *_SLURM_AWS, *slurm.RULES, slurm.quotas), aws.RULES, slurm.AWS_RULES
    ),
    (SlurmLayout, GcpSpec): Rules((*_SLURM, *slurm.RULES), _NO_DATABASE, slurm_gcp.RULES),
    (SmallLayout, GcpSpec): Rules((*small.RULES, *small_gcp.RULES), gcp.RULES, _NO_DIRECTOR),
}


def broken_rules(spec: StackSpec, *, tolerant_of_gaps: bool = False) -> list[Problem]:
    """Every problem of every rule.

    With `tolerant_of_gaps`, values of the spec may be missing or Unusable (infra.stackspec.unions): a rule
    that needs one of them ends there.
    """
    problems: list[Problem] = []
    for check in _checks(spec):
        try:
            problems.extend(check())
        except (AttributeError, TypeError):
            if not tolerant_of_gaps:
                raise
    return problems


def _checks(spec: StackSpec) -> Iterable[Check]:
    layout, cloud = getattr(spec, "layout", None), getattr(spec, "on", None)
    yield from (partial(rule, spec) for rule in (*core.RULES, *checkpoints.RULES))
    rules = _RULES.get((type(layout), type(cloud)), Rules())
    yield from (partial(rule, spec, layout) for rule in rules.of_layout)
    yield from (partial(rule, spec, cloud) for rule in rules.of_cloud)
    yield from (partial(rule, spec, layout, cloud) for rule in rules.of_both)
