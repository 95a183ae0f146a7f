"""Objects of Kueue, and names of runtimes and networks, of a stack from its spec alone: those of `up`.

As in `stacks`, only the SDKs of the stack's own cloud are imported.
"""

from collections.abc import Sequence

from components.kubernetes.clusters import manager
from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.checks import sent
from components.kubernetes.queueing.kueue import Body
from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.training.trainer import runtimes
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout
from infra.stackspec.rules.gcp.gpu_networks import fast_pools
from infra.stackspec.several.derived import workers
from stacks.clusters import WorkerStack
from stacks.layouts.cluster import gate, gpu_offers, of_one_machine, team
from stacks.layouts.manager import clusters
from stacks.parts import NodePool


def queue_objects(spec: StackSpec) -> list[Body]:
    """Every Kueue object of the stack. Raises UserError for a stack without a cluster."""
    teams = [team(one) for one in spec.teams]
    if isinstance(spec.layout, LargeLayout):
        return _of_manager(spec, spec.layout, teams)
    flavors = [pool.flavor for pool in node_pools(spec).values()]
    return [body for layer in kueue.layers(flavors, teams, gate(spec)) for body in layer]


def _of_manager(spec: StackSpec, layout: LargeLayout, teams: Sequence[TeamArgs]) -> list[Body]:
    """The objects of the manager of several clusters, with the quotas of all."""
    specs = workers(spec, layout)
    found = [WorkerStack(specs[one.name], one, None) for one in layout.clusters]
    of_clusters = clusters(found, {name: node_pools(one) for name, one in specs.items()})
    layers = kueue.layers(manager.flavors(of_clusters), manager.teams(of_clusters, teams), {"nodes": {}})
    return [sent(body) if body["kind"] == "ClusterQueue" else body for layer in layers for body in layer]


def runtime_names(spec: StackSpec) -> set[str]:
    """Every runtime of TrainJobs of the stack. Raises UserError for a stack without a cluster."""
    pools = node_pools(spec)
    bodies = runtimes(gpu_offers(pools), spec.smoke.image, of_one_machine(pools))
    return {str(body["metadata"]["name"]) for body in bodies}


def network_names(spec: StackSpec) -> set[str]:
    """Networks that pods of runs name in the stack's cluster."""
    match spec.layout, spec.on:
        case ClusterLayout() as layout, GcpSpec() as google:
            from stacks.clouds.gcp.gpu_networks import pod_networks  # noqa: PLC0415 - seconds of its SDK

            found = pod_networks(fast_pools(layout, google), google.first_rdma_zone)
            return {name for names in found.values() for name in names}
    return set()


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
