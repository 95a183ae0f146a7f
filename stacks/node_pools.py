"""Records of the pools of a stack on any cloud, from its spec alone.

As in `stacks`, only the SDKs of the stack's own clouds are imported.
"""

from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.several.derived import workers
from stacks.parts import NodePool


def node_pools(spec: StackSpec) -> dict[str, NodePool]:
    """The pools by name, without labels of nodes. Raises UserError for a stack without a cluster."""
    match spec.layout, spec.on:
        case LargeLayout() as large, _:
            of_each = [node_pools(one) for one in workers(spec, large).values()]
            return {name: pool for pools in of_each for name, pool in pools.items()}
        case ClusterLayout() as layout, AwsSpec() as on:
            from stacks.clouds.aws import pools as aws_pools  # noqa: PLC0415 - seconds of its SDK

            return {
                pool.name: aws_pools.pool_record(pool, on, {}, region=spec.region) for pool in layout.pools
            }
        case ClusterLayout() as layout, GcpSpec() as google:
            from stacks.clouds.gcp.pools import pool_records  # noqa: PLC0415 - seconds of its SDK

            return pool_records(spec, layout, google)
    rule = "this profile has no queues"
    fix = "Choose profile medium or small-cluster."
    raise UserError(
        [Problem("profile", f"{spec.profile} on {spec.cloud}", rule, fix, code="profile-without-queues")]
    )
