"""Rules of stacks on AWS: checks of the catalog, at the paths of the spec."""

from collections.abc import Callable, Iterator

from infra.catalog import clients, money
from infra.catalog.aws import access, arns, facts, load_balancer, network, pools
from infra.catalog.aws.database import capacity_problems
from infra.catalog.aws.releases import node_image_problems
from infra.catalog.kubernetes.kueue import guarantee_problems
from infra.catalog.kubernetes.prometheus import Nodes, cpus_for_jobs
from infra.catalog.pools import cpu_type_problems, gpu_type_problems, sharing_problems
from infra.errors import Problem
from infra.stackspec.aws.cloud import AwsPoolSpec, AwsSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.rules.aws import accounts
from infra.stackspec.rules.cluster import (
    gpu_problems,
    monitoring_problems,
    shared_pool_problems,
    unknown_pool_problems,
)
from infra.stackspec.sharing import MigSpec, TimeSharingSpec, counted
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, AwsSpec], Iterator[Problem]]
ClusterRule = Callable[[StackSpec, ClusterLayout], Iterator[Problem]]


def region(spec: StackSpec, _: AwsSpec) -> Iterator[Problem]:
    """The region is known."""
    yield from network.region_problems("trainstack:region", spec.region)


def database(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Sizes of the database are valid."""
    if cloud.database is None:
        return
    smallest, largest = cloud.database.min_acu, cloud.database.max_acu
    yield from capacity_problems("on.database.min_acu", smallest, "on.database.max_acu", largest)


def administrators(_: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Administrators are IAM roles or users, each named once; a stack without a cluster has none."""
    if not cloud.admin_arns:
        return
    yield from access.admin_problems("on.admin_arns", cloud.admin_arns)


def members(spec: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Members of teams are IAM roles or users that do not administer the cluster."""
    for index, team in enumerate(spec.teams):
        path = f"teams[{index}].members"
        yield from access.member_problems(path, team.members, "on.admin_arns", cloud.admin_arns)


def way_in(spec: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Certificate and secret of the load balancer match the stack, and clients are limited."""
    wanted = cloud.load_balancer
    if wanted is None or not isinstance(spec.layout, ClusterLayout):
        return
    path, region = "on.load_balancer", spec.region
    yield from load_balancer.client_problems(f"{path}.allowed_cidrs", wanted.allowed_cidrs)
    yield from arns.place_problems(
        f"{path}.certificate_arn", wanted.certificate_arn, region, cloud.account_id
    )
    secret = wanted.oidc.client_secret_arn
    yield from arns.place_problems(f"{path}.oidc.client_secret_arn", secret, region)


def disk_key(spec: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """The key of disks is one of the stack's region and account."""
    if cloud.disk_key_arn is not None:
        yield from arns.place_problems("on.disk_key_arn", cloud.disk_key_arn, spec.region, cloud.account_id)


def endpoints(spec: StackSpec, cloud: AwsSpec) -> Iterator[Problem]:
    """Interface endpoints are of services that have one."""
    yield from network.endpoint_problems("on.endpoints", spec.region, cloud.endpoints)


def log_retention(spec: StackSpec, _: AwsSpec) -> Iterator[Problem]:
    """Log retention is a period that CloudWatch supports."""
    days = spec.data.log_retention_days
    yield from facts.limits["log_retention_days"].problems("data.log_retention_days", days)


def budget(spec: StackSpec, _: AwsSpec) -> Iterator[Problem]:
    """Amounts and addresses are accepted by AWS Budgets."""
    yield from money.amount_problems("budget.monthly_usd", spec.budget.monthly_usd)
    if spec.budget.anomaly_usd is not None:
        yield from money.amount_problems("budget.anomaly_usd", spec.budget.anomaly_usd)
    limit = facts.limits["budget_emails"]
    yield from money.email_problems("budget.alert_emails", spec.budget.alert_emails, limit)


def zones(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Zones are zones of the region, at least two of them."""
    yield from network.zone_problems("layout.zones", spec.region, layout.zones)
    yield from network.eks_zone_problems("layout.zones", spec.region, layout.zones)


def network_range(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The range of the VPC is accepted by EKS and large enough for nodes, pods and EFA interfaces."""
    yield from network.range_problems("layout.network_cidr", layout.network_cidr)


def api_access(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The API server is not open to the whole internet."""
    yield from clients.api_access_problems("layout.api_access", layout.api_access)


def idle_nodes(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Cluster Autoscaler needs `idle_minutes`."""
    if layout.idle_minutes is None:
        rule = "Cluster Autoscaler needs the idle time of nodes"
        fix = "Leave it out (30 minutes), or set minutes."
        yield Problem("layout.idle_minutes", None, rule, fix, code="idle-minutes-missing")


def kubernetes_version(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The version is offered by EKS and supported by the EFA driver."""
    path, version = "layout.kubernetes_version", layout.kubernetes_version
    offered = facts.eks.versions
    if version not in offered:
        rule, fix = "not a version EKS supports", f"Use one of {', '.join(offered)}."
        yield Problem(path, version, rule, fix, code="kubernetes-version-not-offered")
    if isinstance(spec.on, AwsSpec) and spec.on.efa_driver and any(pool.rdma for pool in layout.pools):
        yield from pools.efa_driver_problems("on.efa_driver", spec.on.efa_driver, path, version)


def releases(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Pinned versions are of add-ons that exist, and of images for the control plane's version."""
    if not isinstance(spec.on, AwsSpec):
        return
    version = layout.kubernetes_version
    yield from node_image_problems("on.node_image", spec.on.node_image, "layout.kubernetes_version", version)
    for name in spec.on.addon_versions:
        if name not in facts.eks.addons:
            fix = f"Known are {', '.join(sorted(facts.eks.addons))}."
            yield Problem(f"on.addon_versions.{name}", name, "unknown EKS add-on", fix, code="unknown-addon")


def pool_hardware(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Types of pools exist, and those with RDMA have EFA."""
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}]"
        if pool.machine in facts.cpu_types:
            yield from _without_gpus(path, pool)
            continue
        yield from gpu_type_problems(f"{path}.machine", pool.machine, facts.instance_type)
        yield from facts.limits["root_volume_gib"].problems(f"{path}.disk_gib", pool.disk_gib)
        machine = facts.instance_types.get(pool.machine)
        if machine and pool.rdma:
            yield from pools.efa_problems(f"{path}.rdma", machine)
        if isinstance(spec.on, AwsSpec) and spec.on.efa_driver and pool.rdma:
            path_of_least = f"{path}.min_nodes"
            yield from pools.claimed_pool_problems(path_of_least, spec.on.efa_driver, pool.min_nodes)
        if machine and pool.purchase.kind == "block":
            yield from pools.block_problems(f"{path}.purchase.kind", machine)
        if pool.purchase.kind in ("reserved", "block"):
            yield from pools.reservation_problems(f"{path}.purchase.id", pool.purchase.id)


def shared_gpus(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """GPUs are shared in interactive pools that exist and have some, and validations are of others."""
    if not isinstance(spec.on, AwsSpec):
        return
    yield from unknown_pool_problems(layout, spec.on.pools)
    shared = set()
    for index, pool in enumerate(layout.pools):
        sharing, path = spec.on.pools.get(pool.name, AwsPoolSpec()).sharing, f"on.pools.{pool.name}.sharing"
        if sharing is None:
            continue
        if pool.machine in facts.cpu_types:
            rule, fix = f"{pool.machine} has no GPUs", f"Leave {path} out."
            yield Problem(path, sharing.kind, rule, fix, code="sharing-without-gpus")
            continue
        shared.add(pool.name)
        rdma_path = f"layout.pools[{index}].rdma"
        yield from sharing_problems(path, sharing.kind, pool.purpose, rdma_path, rdma=pool.rdma)
        machine = facts.instance_types.get(pool.machine)
        if isinstance(sharing, MigSpec) and machine is not None:
            yield from pools.partition_problems(f"{path}.partition", sharing.partition, machine)
        if isinstance(sharing, TimeSharingSpec) and machine is not None:
            yield from pools.turns_problems(f"{path}.clients", sharing.clients, machine)
    yield from shared_pool_problems(spec, layout, shared)


def offered_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, shares of GPUs included; 0 for machines without GPUs."""
    machine = facts.instance_types.get(pool.machine)
    if machine is None:
        return 0
    sharing = spec.on.pools.get(pool.name, AwsPoolSpec()).sharing if isinstance(spec.on, AwsSpec) else None
    if isinstance(sharing, MigSpec) and sharing.partition not in facts.accelerators[machine.accelerator].mig:
        return machine.accelerator_count
    return pools.gpus_of_node(machine, **counted(sharing))


def purchases(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The purchase is available on AWS."""
    for index, pool in enumerate(layout.pools):
        if pool.purchase.kind in ("flex_start", "queued"):
            path = f"layout.pools[{index}].purchase.kind"
            fix = "A Capacity Block (`block`) is similar: a fixed price, a fixed time, all nodes at once."
            rule = "is available on Google Cloud only"
            yield Problem(path, pool.purchase.kind, rule, fix, code="purchase-not-on-aws")


def _without_gpus(path: str, pool: PoolSpec) -> Iterator[Problem]:
    yield from pools.cpu_problems(f"{path}.machine", pool.machine)
    yield from pools.cpu_purchase_problems(f"{path}.purchase.kind", pool.purchase.kind)
    yield from facts.limits["root_volume_gib"].problems(f"{path}.disk_gib", pool.disk_gib)
    if pool.rdma:
        rule, fix = f"{pool.machine} has no GPUs", f"Set {path}.rdma to false."
        yield Problem(f"{path}.rdma", True, rule, fix, code="rdma-without-gpus")


def gpus_where_there_are_some(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Guarantees and validations are for pools with GPUs."""
    yield from gpu_problems(spec, {pool.name for pool in layout.pools if pool.machine in facts.cpu_types})


def offers(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Machine types exist and are offered in the region, in as many zones as are named."""
    path, machine = "layout.system_pool.machine", layout.system_pool.machine
    yield from cpu_type_problems(path, machine, facts.cpu_types)
    yield from pools.offer_problems(path, machine, "layout.zones", layout.zones, spec.region)
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}]"
        yield from pools.offer_problems(
            f"{path}.machine", pool.machine, f"{path}.zones", pool.zones, spec.region
        )


def pool_sizes(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Sizes of node groups are accepted by EKS."""
    for path, pool in layout.by_path.items():
        most_path = f"{path}.max_nodes"
        yield from pools.size_problems(f"{path}.min_nodes", pool.min_nodes, most_path, pool.max_nodes)


def monitoring(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Prometheus has the memory for the series of all nodes, on a node of the system pool."""
    nodes = []
    for pool in layout.pools:
        known = facts.instance_types.get(pool.machine)
        processors = known or facts.cpu_type(pool.machine)
        if processors is None:
            return
        gpus, devices = (
            (offered_gpus(spec, pool), known.efa_interfaces if pool.rdma else 0) if known else (0, 0)
        )
        nodes.append(Nodes(pool.max_nodes, cpus_for_jobs(processors.vcpu), gpus, devices))
    system = facts.cpu_type(layout.system_pool.machine)
    yield from monitoring_problems(spec, layout, nodes, system.memory_mib / 1024 if system else None)


def shared_file_system(spec: StackSpec, _: ClusterLayout) -> Iterator[Problem]:
    """The size of the file system is offered by FSx."""
    wanted = spec.data.shared_fs
    if wanted is None:
        return
    problem = facts.lustre.lustre_problem(wanted.capacity_gib, wanted.throughput_mb_s_per_tib, wanted.rdma)
    if problem:
        fix = "Set an offered size."
        yield Problem(
            "data.shared_fs", f"{wanted.capacity_gib} GiB", problem, fix, code="fsx-size-not-offered"
        )


def quotas(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Guarantees do not exceed the maximum size of a pool without the gate."""
    for index, item in enumerate(layout.pools):
        machine = facts.instance_types.get(item.machine)
        if machine:
            yield from guarantee_problems(
                f"layout.pools[{index}].max_nodes",
                spec.guaranteed[item.name],
                nodes=item.max_nodes,
                gpus_per_node=offered_gpus(spec, item),
                gate_nodes=spec.validated.get(item.name, 0),
            )


RULES: tuple[Rule, ...] = (
    region,
    database,
    administrators,
    members,
    way_in,
    disk_key,
    *accounts.RULES,
    endpoints,
    log_retention,
    budget,
)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    zones,
    network_range,
    api_access,
    idle_nodes,
    kubernetes_version,
    releases,
    pool_hardware,
    shared_gpus,
    purchases,
    gpus_where_there_are_some,
    offers,
    pool_sizes,
    monitoring,
    shared_file_system,
    quotas,
)
