"""What must hold between the parts of a spec: each rule is a small function that yields problems.

`core` and `checkpoints` hold for every stack, `cluster` for every stack with one cluster, `small` for those
without; `parts` says what only one of both has. `aws` and `gcp` hold for those on a cloud. Facts and limits
of a cloud are not here: the rules call the catalog, as components and the rehearsal do.
"""

from collections.abc import Callable, Iterable, Iterator

from infra.errors import Problem
from infra.stackspec.clouds import AwsSpec, GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.rules import checkpoints, cluster, core, parts, windows
from infra.stackspec.rules.aws import cluster as aws
from infra.stackspec.rules.aws import small
from infra.stackspec.rules.gcp import cluster as gcp
from infra.stackspec.rules.gcp import small as small_gcp
from infra.stackspec.stack import StackSpec

Check = Callable[[], Iterator[Problem]]


def broken_rules(spec: StackSpec, *, tolerant_of_gaps: bool = False) -> list[Problem]:
    """Every problem of every rule.

    With `tolerant_of_gaps`, values of the spec may be missing or of a wrong type: a rule that needs one of
    them cannot be judged and is left out.
    """
    problems = []
    for check in _checks(spec):
        try:
            problems += list(check())
        except (AttributeError, TypeError):
            if not tolerant_of_gaps:
                raise
    return problems


def _checks(spec: StackSpec) -> Iterable[Check]:
    layout, cloud = getattr(spec, "layout", None), getattr(spec, "on", None)
    yield from (lambda rule=rule: rule(spec) for rule in (*core.RULES, *checkpoints.RULES))
    if isinstance(layout, ClusterLayout):
        yield from (lambda rule=rule: rule(spec, layout) for rule in cluster.RULES)
        yield from (lambda rule=rule: rule(spec, layout) for rule in windows.RULES)
        yield lambda: parts.missing(spec, layout)
    if isinstance(layout, SmallLayout):
        yield from (lambda rule=rule: rule(spec, layout) for rule in small.RULES)
    if isinstance(cloud, AwsSpec):
        yield from (lambda rule=rule: rule(spec, cloud) for rule in aws.RULES)
        if isinstance(layout, ClusterLayout):
            yield from (lambda rule=rule: rule(spec, layout) for rule in aws.CLUSTER_RULES)
        if isinstance(layout, SmallLayout):
            yield from (lambda rule=rule: rule(spec, layout) for rule in small.AWS_RULES)
    if isinstance(cloud, GcpSpec):
        yield from (lambda rule=rule: rule(spec, cloud) for rule in gcp.RULES)
        if isinstance(layout, ClusterLayout):
            yield from (lambda rule=rule: rule(spec, layout, cloud) for rule in gcp.CLUSTER_RULES)
        if isinstance(layout, SmallLayout):
            yield from (lambda rule=rule: rule(spec, layout) for rule in small_gcp.RULES)
