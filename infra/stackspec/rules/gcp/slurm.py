"""Rules of a Slurm system on Google Cloud, by Cluster Director."""

from collections.abc import Callable, Iterator

from infra.catalog.gcp import facts, filestore, lustre, network, pools
from infra.catalog.gcp.director import (
    cluster_id_problems,
    director,
    login_problems,
    machine_problems,
    reservation_problems,
    version_problems,
)
from infra.errors import Problem
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.rules.parts import missing_problem
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, SlurmLayout, GcpSpec], Iterator[Problem]]


def on_director(_: StackSpec, layout: SlurmLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Id, version and the login node are accepted by Cluster Director; names of pools are (RFC 1034)."""
    if cloud.director is None:
        example = "such as `director: {cluster_id: research}`, of at most ten lower-case letters and digits"
        yield missing_problem("on.director", f"the Slurm system, {example}.")
    else:
        yield from cluster_id_problems("on.director.cluster_id", cloud.director.cluster_id)
    yield from version_problems("layout.slurm_version", layout.slurm_version)
    yield from login_problems("layout.login.machine", layout.login.machine)


def not_settable(_: StackSpec, layout: SlurmLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """No values that the service decides itself, and no parts that the stack does not have."""
    for name in ("idle_minutes", "max_jobs"):
        value = getattr(layout, name)
        if value is not None:
            rule = "the resource of Cluster Director has no such setting"
            yield Problem(f"layout.{name}", value, rule, "Set null.", code="not-with-director")
    if cloud.database is not None:
        rule, fix = "is not supported with Slurm", "Leave it out."
        yield Problem("on.database", cloud.database.tier, rule, fix, code="not-with-slurm")
    for name in (*cloud.needed_by_clusters, *cloud.optional_in_clusters, *cloud.never_in_clusters):
        if getattr(cloud, name) and name != "homes_gib":
            rule = "is not supported with Slurm"
            yield Problem(f"on.{name}", None, rule, "Leave it out.", code="not-with-slurm")


def one_zone(_: StackSpec, layout: SlurmLayout, __: GcpSpec) -> Iterator[Problem]:
    """Login node, pools and file system are in one zone: the API wants zones of a cluster to match."""
    if len(layout.zones) > 1:
        rule, fix = "a cluster of Cluster Director is in one zone", f"Set [{layout.zones[0]}]."
        yield Problem("layout.zones", [*layout.zones], rule, fix, code="director-needs-one-zone")


def limits_of_teams(spec: StackSpec, _: SlurmLayout, __: GcpSpec) -> Iterator[Problem]:
    """No quotas, budgets and shares: new clusters enforce none, and the resource cannot change that."""
    enforced, shares = (
        director.settings["AccountingStorageEnforce"],
        director.settings["PriorityWeightFairshare"],
    )
    for index, team in enumerate(spec.teams):
        path = f"teams[{index}]"
        rule = f"on Cluster Director {enforced.effect}"
        if any(team.gpus.values()):
            fix = "Leave it out; size pools for the teams, or use a cluster (profile large)."
            yield Problem(f"{path}.gpus", dict(team.gpus), rule, fix, code="director-enforces-nothing")
        if team.over_budget == "stop":
            fix = "Set warn; the budget of the stack sends mail."
            yield Problem(f"{path}.over_budget", "stop", rule, fix, code="director-enforces-nothing")
        if team.weight != 1:
            rule, fix = f"on Cluster Director {shares.effect}", "Leave it out."
            yield Problem(f"{path}.weight", team.weight, rule, fix, code="director-enforces-nothing")


def machines(_: StackSpec, layout: SlurmLayout, __: GcpSpec) -> Iterator[Problem]:
    """Machine types of pools are of the service, bought in a way that it has."""
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}]"
        kind = pool.purchase.kind
        yield from machine_problems(f"{path}.machine", pool.machine, f"{path}.purchase.kind", kind)
        if pool.purchase.kind in ("reserved", "block"):
            yield from reservation_problems(f"{path}.purchase.id", pool.purchase.id)
        if pool.rdma and pool.machine in facts.cpu_types:
            rule, fix = f"{pool.machine} has no GPUs", f"Set {path}.rdma to false."
            yield Problem(f"{path}.rdma", True, rule, fix, code="rdma-without-gpus")


def places(spec: StackSpec, layout: SlurmLayout, _: GcpSpec) -> Iterator[Problem]:
    """Zone and range exist, and the region offers the machine types."""
    yield from network.zone_problems("layout.zones", spec.region, layout.zones)
    path = "layout.network_cidr"
    yield from network.range_problems(path, layout.network_cidr)
    yield from network.services_problems(
        path, layout.network_cidr, homes=spec.data.homes, shared_fs=spec.data.shared_fs is not None
    )
    login = "layout.login.machine"
    yield from pools.offer_problems(login, layout.login.machine, "layout.zones", layout.zones, spec.region)
    for at, pool in layout.by_path.items():
        yield from pools.offer_problems(f"{at}.machine", pool.machine, f"{at}.zones", pool.zones, spec.region)


def file_systems(spec: StackSpec, _: SlurmLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Lustre and Filestore offer the sizes; the gate has a shared home."""
    shared = spec.data.shared_fs
    if shared is not None:
        size, speed = "data.shared_fs.capacity_gib", "data.shared_fs.throughput_mb_s_per_tib"
        yield from lustre.size_problems(size, shared.capacity_gib, speed, shared.throughput_mb_s_per_tib)
        yield from lustre.rdma_problems("data.shared_fs.rdma", rdma=shared.rdma)
    if spec.data.homes:
        yield from filestore.size_problems(
            "on.homes_gib", cloud.homes_size_gib, "data.homes", filestore.HOMES
        )
    elif spec.smoke.enabled:
        rule, fix = "the gate runs from a home that all nodes share", "Set true, or smoke.enabled to false."
        yield Problem("data.homes", False, rule, fix, against="smoke.enabled", code="slurm-gate-needs-homes")


def only_with_slurm(_: StackSpec, __: ClusterLayout | SmallLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Settings of Cluster Director are for stacks with Slurm."""
    if cloud.director is not None:
        rule, fix = "is only for the profile large-slurm", "Leave it out."
        yield Problem("on.director", cloud.director.cluster_id, rule, fix, code="needs-slurm")


RULES: tuple[Rule, ...] = (
    on_director,
    not_settable,
    one_zone,
    limits_of_teams,
    machines,
    places,
    file_systems,
)
