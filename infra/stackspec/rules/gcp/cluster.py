"""Rules of stacks on Google Cloud: checks of the catalog, at the paths of the spec."""

from collections.abc import Callable, Iterator

from infra.catalog import money
from infra.catalog.gcp import access, database, fabrics, facts, filestore, lustre, network, pools
from infra.catalog.gcp.gke import maintenance_problems
from infra.catalog.gcp.model import MachineType
from infra.catalog.kubernetes.kueue import guarantee_problems
from infra.catalog.kubernetes.prometheus import Nodes, cpus_for_jobs
from infra.catalog.pools import cpu_type_problems, gpu_type_problems, sharing_problems
from infra.errors import Problem
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.rules.cluster import (
    gpu_problems,
    monitoring_problems,
    shared_pool_problems,
    unknown_pool_problems,
)
from infra.stackspec.rules.gcp.gpu_networks import shared_networks
from infra.stackspec.rules.parts import missing_problem
from infra.stackspec.sharing import MigSpec, counted
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import describe

Rule = Callable[[StackSpec, GcpSpec], Iterator[Problem]]
ClusterRule = Callable[[StackSpec, ClusterLayout, GcpSpec], Iterator[Problem]]


def region(spec: StackSpec, _: GcpSpec) -> Iterator[Problem]:
    """The region is known."""
    yield from network.region_problems("trainstack:region", spec.region)


def database_tier(spec: StackSpec, cloud: GcpSpec) -> Iterator[Problem]:
    """The database tier is offered; with a cluster, as many jobs write to it, it has dedicated cores."""
    if cloud.database is None:
        yield missing_problem("on.database", describe(GcpSpec, "database"))
    else:
        shared = not spec.layout.has_cluster
        yield from database.tier_problems("on.database.tier", cloud.database.tier, shared=shared)


def administrators(_: StackSpec, cloud: GcpSpec) -> Iterator[Problem]:
    """Administrators are users, groups or service accounts, each named once; no cluster has none."""
    if cloud.admins:
        yield from access.admin_problems("on.admins", cloud.admins)


def members(spec: StackSpec, cloud: GcpSpec) -> Iterator[Problem]:
    """Members of teams are users or groups that do not administer the cluster."""
    for index, team in enumerate(spec.teams):
        path = f"teams[{index}].members"
        yield from access.member_problems(path, team.members)
        yield from access.apart_problems(path, team.members, "on.admins", cloud.admins)


def groups_of_one_domain(spec: StackSpec, _: GcpSpec) -> Iterator[Problem]:
    """Groups of teams are in one domain, as a cluster supports groups of one domain only."""
    first = ""
    for index, team in enumerate(spec.teams):
        for at, member in enumerate(team.members):
            domain = member.rpartition("@")[2]
            first = first or domain if member.startswith("group:") else first
            if member.startswith("group:") and domain != first:
                fix = f"List its members as `user:`, or create a group in {first}."
                rule = f"a cluster supports groups of one domain only, here {first}"
                yield Problem(
                    f"teams[{index}].members[{at}]", member, rule, fix, code="group-of-other-domain"
                )


def budget(spec: StackSpec, _: GcpSpec) -> Iterator[Problem]:
    """Amounts and addresses are accepted by Cloud Billing."""
    yield from money.amount_problems("budget.monthly_usd", spec.budget.monthly_usd)
    # The API reads anomalies only (cloudbilling v1beta), and the provider has no resource (its issue 19864).
    if spec.budget.anomaly_usd is not None:
        rule = "alerts on anomalies are set up in the console of Cloud Billing, for a whole account"
        fix = "Set it to null, and set the amount there (docs/tutorials/google-cloud-project.md)."
        yield Problem("budget.anomaly_usd", spec.budget.anomaly_usd, rule, fix, code="anomalies-not-reported")
    limit = facts.limits["budget_channels"]
    yield from money.email_problems("budget.alert_emails", spec.budget.alert_emails, limit)
    for index, team in enumerate(spec.teams):
        if team.alert_emails:
            path, limit = f"teams[{index}].alert_emails", facts.limits["policy_channels"]
            yield from money.count_problems(path, len(team.alert_emails), limit)


def retention(spec: StackSpec, _: GcpSpec) -> Iterator[Problem]:
    """Retention of logs and deleted objects is accepted by the services."""
    data = spec.data
    yield from facts.limits["log_retention_days"].problems("data.log_retention_days", data.log_retention_days)
    yield from facts.limits["soft_delete_days"].problems("data.noncurrent_days", data.noncurrent_days)


def deletions(spec: StackSpec, _: GcpSpec) -> Iterator[Problem]:
    """Deleted checkpoints are deleted in the bucket, too: Managed Lustre copies no deletions."""
    if spec.data.checkpoints.in_bucket == "kept" and spec.data.shared_fs is not None:
        rule = "Managed Lustre copies new files and no deletions"
        fix = "Set all, with fewer expire_days; or leave out data.shared_fs."

        yield Problem(
            "data.checkpoints.in_bucket",
            "kept",
            rule,
            fix,
            against="data.shared_fs",
            code="lustre-copies-no-deletions",
        )


def maintenance(_: StackSpec, cloud: GcpSpec) -> Iterator[Problem]:
    """Maintenance windows are long enough for GKE."""
    wanted = cloud.maintenance
    if wanted is None:
        return
    yield from maintenance_problems("on.maintenance.days", wanted.days, "on.maintenance.hours", wanted.hours)


def zones(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Zones are zones of the region."""
    yield from network.zone_problems("layout.zones", spec.region, layout.zones)
    if cloud.rapid_checkpoints is not None:
        yield from network.bucket_zone_problems(
            "on.rapid_checkpoints", cloud.rapid_checkpoints, spec.region, "layout.zones", layout.zones
        )


def network_range(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """The range is private, and large enough for all pools at their maximum size."""
    path = "layout.network_cidr"
    yield from network.range_problems(path, layout.network_cidr)
    yield from network.services_problems(
        path, layout.network_cidr, homes=spec.data.homes, shared_fs=spec.data.shared_fs is not None
    )
    if cloud.pods_per_node is None:
        return
    yield from facts.limits["pods_per_node"].problems("on.pods_per_node", cloud.pods_per_node)
    jobs = sum(pool.max_nodes for pool in layout.pools)
    nodes = network.nodes_by_pods(cloud.pods_per_node, jobs=jobs, system=layout.system_pool.max_nodes)
    yield from network.room_problems(path, layout.network_cidr, nodes, against="on.pods_per_node")


def api_access(_: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """The API server has one endpoint with access, not open to the whole internet."""
    if cloud.endpoint is not None:
        access_path = "layout.api_access"
        yield from network.api_problems("on.endpoint", cloud.endpoint, access_path, layout.api_access)


def kubernetes_version(_: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """The version is offered by GKE in the channel."""
    if cloud.channel is not None:
        yield from facts.gke.version_problems(
            "layout.kubernetes_version", layout.kubernetes_version, "on.channel", cloud.channel
        )


def pool_names(_: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """GKE settings are for pools that exist."""
    yield from unknown_pool_problems(layout, cloud.pools)


def pool_hardware(_: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Types of pools exist, with the requested networks, disks and partitions."""
    for index, pool in enumerate(layout.pools):
        path, on = f"layout.pools[{index}]", f"on.pools.{pool.name}"
        extra = cloud.pools.get(pool.name, GcpPoolSpec())
        if extra.local_ssds is not None:
            yield from pools.local_ssd_problems(f"{on}.local_ssds", extra.local_ssds, pool.machine)
        if pool.machine in facts.cpu_types:
            yield from _without_gpus(path, on, pool, extra)
            continue
        yield from gpu_type_problems(f"{path}.machine", pool.machine, facts.machine_type)
        machine = facts.machine_types.get(pool.machine)
        if machine is None:
            continue
        yield from pools.refused_problems(f"{path}.machine", machine)
        if pool.rdma:
            yield from fabrics.rdma_problems(f"{path}.rdma", machine)
        if pool.rdma and cloud.accelerator_networks is not None:
            yield from fabrics.making_problems(
                "on.accelerator_networks",
                cloud.accelerator_networks,
                machine.name,
                "layout.kubernetes_version",
                layout.kubernetes_version,
            )
        if extra.sharing is not None:
            yield from sharing_problems(
                f"{on}.sharing", extra.sharing.kind, pool.purpose, f"{path}.rdma", rdma=pool.rdma
            )
            if cloud.pods_per_node is not None:
                shares = offered_gpus(machine, extra)
                yield from pools.share_problems(f"{on}.sharing", shares, machine, cloud.pods_per_node)
        if isinstance(extra.sharing, MigSpec):
            yield from pools.partition_problems(f"{on}.sharing.partition", extra.sharing.partition, machine)


def _without_gpus(path: str, on: str, pool: PoolSpec, extra: GcpPoolSpec) -> Iterator[Problem]:
    yield from pools.cpu_problems(f"{path}.machine", pool.machine)
    yield from pools.cpu_purchase_problems(f"{path}.purchase.kind", pool.purchase.kind)
    if pool.rdma:
        rule, fix = f"{pool.machine} has no GPUs", f"Set {path}.rdma to false."
        yield Problem(f"{path}.rdma", True, rule, fix, code="rdma-without-gpus")
    if extra.sharing is not None:
        fix = f"Leave {on}.sharing out."
        rule = f"{pool.machine} has no GPUs"
        yield Problem(f"{on}.sharing", extra.sharing.kind, rule, fix, code="sharing-without-gpus")


def purchases(_: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """The machine is sold that way, and the way fits size and placement."""
    for index, pool in enumerate(layout.pools):
        path, kind = f"layout.pools[{index}]", pool.purchase.kind
        yield from pools.purchase_problems(f"{path}.purchase.kind", kind, pool.machine)
        if pool.rdma:
            yield from pools.gang_problems(f"{path}.purchase.kind", kind, f"{path}.rdma", pool.max_nodes)
        if pool.purchase.kind in ("reserved", "block"):
            yield from pools.reservation_problems(f"{path}.purchase.id", kind, pool.purchase.id)
        yield from pools.queued_problems(f"{path}.purchase.kind", kind, f"{path}.min_nodes", pool.min_nodes)
        if cloud.pools.get(pool.name, GcpPoolSpec()).compact:
            compact, zones = f"on.pools.{pool.name}.compact", len(pool.zones)
            yield from pools.compact_problems(compact, f"{path}.purchase.kind", kind, f"{path}.zones", zones)
            if pool.rdma:
                yield from pools.rdma_compact_problems(compact, f"{path}.rdma", pool.machine)


def gpus_where_there_are_some(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Guarantees are for pools with GPUs, and pools with shared GPUs have quotas in shares."""
    without = {pool.name for pool in layout.pools if pool.machine in facts.cpu_types}
    yield from gpu_problems(spec, without)
    shared = {name for name, extra in cloud.pools.items() if extra.sharing is not None}
    yield from shared_pool_problems(spec, layout, shared - without)


def offers(spec: StackSpec, layout: ClusterLayout, _: GcpSpec) -> Iterator[Problem]:
    """Machine types exist and are offered in the region and in the named zones."""
    path, machine = "layout.system_pool.machine", layout.system_pool.machine
    yield from cpu_type_problems(path, machine, facts.cpu_types)
    yield from pools.offer_problems(path, machine, "layout.zones", layout.zones, spec.region)
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}]"
        yield from pools.offer_problems(
            f"{path}.machine", pool.machine, f"{path}.zones", pool.zones, spec.region
        )


def pool_sizes(_: StackSpec, layout: ClusterLayout, __: GcpSpec) -> Iterator[Problem]:
    """Sizes of node pools are accepted by GKE."""
    for path, pool in layout.by_path.items():
        most_path = f"{path}.max_nodes"
        yield from pools.size_problems(f"{path}.min_nodes", pool.min_nodes, most_path, pool.max_nodes)


def monitoring(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Prometheus has the memory for the series of all nodes, on a node of the system pool."""
    nodes = []
    for pool in layout.pools:
        known, cpus = facts.machine_types.get(pool.machine), facts.cpu_type(pool.machine)
        if known is not None:
            gpus = offered_gpus(known, cloud.pools.get(pool.name, GcpPoolSpec()))
            nodes.append(Nodes(pool.max_nodes, cpus_for_jobs(known.vcpu), gpus))
        elif cpus is not None:
            nodes.append(Nodes(pool.max_nodes, cpus_for_jobs(cpus.vcpu)))
        else:
            return
    system = facts.cpu_type(layout.system_pool.machine)
    yield from monitoring_problems(spec, layout, nodes, system.memory_gib if system else None)


def shared_file_system(spec: StackSpec, _: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Size and clients of the file system are offered by Managed Lustre."""
    wanted = spec.data.shared_fs
    if wanted is None:
        return
    path = "data.shared_fs"
    if cloud.dataset_claims:
        rule = "the claims of datasets are folders of the shared file system"
        fix = "Set false, or leave out data.shared_fs."
        yield Problem("on.dataset_claims", True, rule, fix, code="dataset-claims-twice", against=path)
    yield from lustre.size_problems(
        f"{path}.capacity_gib",
        wanted.capacity_gib,
        f"{path}.throughput_mb_s_per_tib",
        wanted.throughput_mb_s_per_tib,
    )
    yield from lustre.rdma_problems(f"{path}.rdma", rdma=wanted.rdma)


def homes(spec: StackSpec, _: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Filestore offers the size of homes."""
    if spec.data.homes:
        yield from filestore.size_problems(
            "on.homes_gib", cloud.homes_size_gib, "data.homes", filestore.HOMES
        )


def quotas(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Guarantees do not exceed the maximum size of a pool without the gate."""
    for index, item in enumerate(layout.pools):
        machine = facts.machine_types.get(item.machine)
        if machine:
            yield from guarantee_problems(
                f"layout.pools[{index}].max_nodes",
                spec.guaranteed[item.name],
                nodes=item.max_nodes,
                gpus_per_node=offered_gpus(machine, cloud.pools.get(item.name, GcpPoolSpec())),
                gate_nodes=spec.validated.get(item.name, 0),
            )


def offered_gpus(machine: MachineType, extra: GcpPoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool."""
    sharing = extra.sharing
    if isinstance(sharing, MigSpec) and sharing.partition not in facts.accelerators[machine.accelerator].mig:
        return machine.count
    return pools.gpus_of_node(machine, **counted(sharing))


RULES: tuple[Rule, ...] = (
    region,
    database_tier,
    administrators,
    members,
    groups_of_one_domain,
    budget,
    retention,
    deletions,
    maintenance,
)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    zones,
    network_range,
    api_access,
    kubernetes_version,
    pool_names,
    pool_hardware,
    shared_networks,
    purchases,
    gpus_where_there_are_some,
    offers,
    pool_sizes,
    monitoring,
    shared_file_system,
    homes,
    quotas,
)
