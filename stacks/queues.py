"""Objects of Kueue, and names of runtimes and networks, of a stack from its spec alone: those of `up`."""

from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.kueue import Body
from components.kubernetes.training.trainer import runtimes
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.rules.gcp.gpu_networks import fast_pools
from stacks.clouds.aws import pools as aws_pools
from stacks.clouds.gcp import pools as gcp_pools
from stacks.clouds.gcp.gpu_networks import pod_networks
from stacks.layouts.cluster import gate, gpu_offers, of_one_machine, team
from stacks.parts import NodePool


def queue_objects(spec: StackSpec) -> list[Body]:
    """Every Kueue object of the stack. Raises UserError for a stack without a cluster."""
    flavors = [pool.flavor for pool in node_pools(spec).values()]
    teams = [team(one) for one in spec.teams]
    return [body for layer in kueue.layers(flavors, teams, gate(spec)) for body in layer]


def runtime_names(spec: StackSpec) -> set[str]:
    """Every runtime of TrainJobs of the stack. Raises UserError for a stack without a cluster."""
    pools = node_pools(spec)
    bodies = runtimes(gpu_offers(pools), spec.smoke.image, of_one_machine(pools))
    return {str(body["metadata"]["name"]) for body in bodies}


def network_names(spec: StackSpec) -> set[str]:
    """Networks that pods of runs name in the stack's cluster."""
    match spec.layout, spec.on:
        case ClusterLayout() as layout, GcpSpec() as google:
            found = pod_networks(fast_pools(layout, google), google.first_rdma_zone)
            return {name for names in found.values() for name in names}
    return set()


def node_pools(spec: StackSpec) -> dict[str, NodePool]:
    """The pools by name, without labels of nodes. Raises UserError for a stack without a cluster."""
    match spec.layout, spec.on:
        case ClusterLayout() as layout, AwsSpec() as on:
            return {
                pool.name: aws_pools.pool_record(pool, on, {}, region=spec.region) for pool in layout.pools
            }
        case ClusterLayout() as layout, GcpSpec() as google:
            names = pod_networks(fast_pools(layout, google), google.first_rdma_zone)
            return {
                pool.name: gcp_pools.pool_record(
                    pool, google, {}, region=spec.region, networks=names.get(pool.name)
                )
                for pool in layout.pools
            }
    rule = "this profile has no queues"
    fix = "Choose profile medium or small-cluster."
    raise UserError(
        [Problem("profile", f"{spec.profile} on {spec.cloud}", rule, fix, code="profile-without-queues")]
    )
