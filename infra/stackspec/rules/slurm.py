"""Rules of a layout with one Slurm system, on every cloud and on AWS."""

import datetime
from collections.abc import Callable, Iterator
from typing import Final

from infra.catalog import slurm_names as names
from infra.catalog.aws import access, facts, network, pools
from infra.catalog.aws.pcs import name_problems, pcs, size_problems, version_problems
from infra.catalog.clients import api_access_problems
from infra.catalog.kubernetes.kueue import guarantee_problems
from infra.catalog.pools import cpu_type_problems
from infra.errors import Problem
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.rules import slinky
from infra.stackspec.rules.parts import missing_problem
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import describe

Rule = Callable[[StackSpec, SlurmLayout], Iterator[Problem]]
AwsRule = Callable[[StackSpec, SlurmLayout, AwsSpec], Iterator[Problem]]
LOGIN: Final = "login"
"""Name of the compute node group of the login node."""
_UNSUPPORTED: Final = "is not supported with Slurm"


def slurm_names(spec: StackSpec, layout: SlurmLayout) -> Iterator[Problem]:
    """Pools and teams have names that partitions and accounts can have, each once."""
    seen: set[str] = set()
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}].name"
        yield from names.partition_problems(path, pool.name)
        if pool.name in seen:
            rule, fix = "two pools have this name", "Name each partition differently."
            yield Problem(path, pool.name, rule, fix, code="pool-named-twice")
        seen.add(pool.name)
    for index, team in enumerate(spec.teams):
        yield from names.account_problems(f"teams[{index}].name", team.name)


def unsupported(spec: StackSpec, layout: SlurmLayout) -> Iterator[Problem]:
    """No settings that only Kubernetes or its queues have."""
    given: dict[str, tuple[object, str]] = {
        "tracking": (
            spec.tracking,
            "Leave it out: the cloud runs MLflow."
            if spec.on.managed_tracking
            else "Leave it out, and set MLFLOW_TRACKING_URI in the jobs.",
        ),
        "smoke.schedule": (spec.smoke.schedule, "Set null, and submit the rendered script with scrontab."),
        "smoke.drain": (spec.smoke.drain, "Set false: the gate waits in the queue."),
        "budget.over_budget": (
            spec.budget.over_budget == "stop",
            "Set warn; where the cloud lets Slurm enforce limits, set teams[].over_budget to stop.",
        ),
    }
    for index, pool in enumerate(layout.pools):
        fix = "Leave it out, and reserve the partition for these hours with scontrol."
        given[f"layout.pools[{index}].hours"] = pool.hours, fix
    for index, team in enumerate(spec.teams):
        given[f"teams[{index}].shares"] = team.shares, "Guarantee whole GPUs in gpus."
        given[f"teams[{index}].members"] = (
            team.members,
            "Leave it out, and run add-user.sh on the login node.",
        )
        given[f"teams[{index}].budget_exempt"] = (
            team.budget_exempt,
            "Leave it out, and raise the limit with sacctmgr.",
        )
    for path, (value, fix) in given.items():
        if value:
            shown = value if isinstance(value, str | bool) else None
            yield Problem(path, shown, _UNSUPPORTED, fix, code="not-with-slurm")


def team_budgets(spec: StackSpec, _: SlurmLayout) -> Iterator[Problem]:
    """No team may spend more than all together: its limit would never be reached before that of the stack."""
    total = spec.budget.monthly_usd
    for index, team in enumerate(spec.teams):
        if team.monthly_usd is not None and team.monthly_usd > total:
            rule, fix = f"is above the {total:g} of all teams", "Lower it, or raise budget.monthly_usd."
            where, against = f"teams[{index}].monthly_usd", "budget.monthly_usd"
            yield Problem(where, team.monthly_usd, rule, fix, against, code="team-budget-above-stack")


def quotas(spec: StackSpec, layout: SlurmLayout) -> Iterator[Problem]:
    """Each team has a guarantee, and guarantees do not exceed the GPUs of a partition.

    The gate waits in the queue and needs none free.
    """
    for index, team in enumerate(spec.teams):
        yield from names.quota_problems(f"teams[{index}].gpus", team.gpus)
    for index, pool in enumerate(layout.pools):
        known = facts.instance_types.get(pool.machine)
        yield from guarantee_problems(
            f"layout.pools[{index}].max_nodes",
            spec.guaranteed[pool.name],
            nodes=pool.max_nodes,
            gpus_per_node=known.accelerator_count if known else 0,
            gate_nodes=0,
        )


def home(_: StackSpec, __: SlurmLayout, cloud: AwsSpec) -> Iterator[Problem]:
    """Slurm runs in one place: on AWS PCS, or in an EKS cluster of the stack."""
    if cloud.pcs is None and cloud.slinky is None:
        rule = "required key is missing"
        fix = (
            "Add it: image_id, the id of the machine image of all nodes; or add on.slinky, for Slurm in an "
            "EKS cluster."
        )
        yield Problem("on.pcs", None, rule, fix, code="required-key-missing")
    if cloud.pcs is not None and cloud.slinky is not None:
        rule, fix = "a stack has one Slurm, and on.pcs is another one", "Leave out on.slinky or on.pcs."
        yield Problem("on.slinky", None, rule, fix, code="slurm-twice")


def on_pcs(spec: StackSpec, layout: SlurmLayout, cloud: AwsSpec) -> Iterator[Problem]:
    """Version, size and names are accepted by AWS PCS."""
    if cloud.pcs is None:
        return
    for name in ("idle_minutes", "max_jobs"):
        if getattr(layout, name) is None:
            yield missing_problem(f"layout.{name}", describe(SlurmLayout, name))
    yield from version_problems("layout.slurm_version", layout.slurm_version, datetime.date.today())
    jobs = layout.max_jobs or 1
    size = cloud.pcs.size or pcs.size_for(layout.nodes, jobs)
    yield from size_problems("on.pcs.size", size, nodes=layout.nodes, jobs=jobs, against="layout.pools")
    yield from name_problems("stack", "cluster", spec.name)
    for index, pool in enumerate(layout.pools):
        yield from name_problems(f"layout.pools[{index}].name", "group", pool.name)


def reserved_names(_: StackSpec, layout: SlurmLayout, __: AwsSpec) -> Iterator[Problem]:
    """No pool has the name of the login node."""
    for index, pool in enumerate(layout.pools):
        if pool.name == LOGIN:
            rule, fix = "is the name of the group of the login node", "Rename the pool."
            yield Problem(f"layout.pools[{index}].name", pool.name, rule, fix, code="slurm-name-reserved")


def in_a_cluster(spec: StackSpec, layout: SlurmLayout, cloud: AwsSpec) -> Iterator[Problem]:
    """Pools, version and names fit slurm-operator, whose nodes are pods on nodes that always run."""
    if cloud.slinky is None:
        return
    yield from slinky.problems(layout)
    yield from access.cluster_name_problems("stack", spec.name)
    path, version, offered = (
        "on.slinky.kubernetes_version",
        cloud.slinky.kubernetes_version,
        facts.eks.versions,
    )
    if version not in offered:
        rule, fix = "not a version EKS supports", f"Use one of {', '.join(offered)}."
        yield Problem(path, version, rule, fix, code="kubernetes-version-not-offered")
    if not cloud.admin_arns:
        yield missing_problem("on.admin_arns", describe(AwsSpec, "admin_arns"))
    else:
        yield from access.admin_problems("on.admin_arns", cloud.admin_arns)
    yield from api_access_problems("on.slinky.api_access", cloud.slinky.api_access)
    if cloud.efa_driver == "dra":
        rule = "pods of slurm-operator request devices, and cannot claim them"
        yield Problem("on.efa_driver", "dra", rule, "Set device_plugin.", code="slinky-without-dra")


def login_node(spec: StackSpec, layout: SlurmLayout, _: AwsSpec) -> Iterator[Problem]:
    """The login node is of a type without GPUs that the region offers."""
    path, machine = "layout.login.machine", layout.login.machine
    yield from cpu_type_problems(path, machine, facts.cpu_types)
    yield from pools.offer_problems(path, machine, "layout.zones", layout.zones, spec.region)


def offers(spec: StackSpec, layout: SlurmLayout, _: AwsSpec) -> Iterator[Problem]:
    """Machine types of pools are offered in the region, in as many zones as are named."""
    yield from network.zone_problems("layout.zones", spec.region, layout.zones)
    for path, pool in layout.by_path.items():
        yield from pools.offer_problems(
            f"{path}.machine", pool.machine, f"{path}.zones", pool.zones, spec.region
        )


def only_with_slurm(_: StackSpec, __: ClusterLayout | SmallLayout, cloud: AwsSpec) -> Iterator[Problem]:
    """Settings of PCS and of slurm-operator are for stacks with Slurm."""
    for name in ("pcs", "slinky"):
        if getattr(cloud, name) is not None:
            rule, fix = "is only for the profile large-slurm", "Leave it out."
            yield Problem(f"on.{name}", None, rule, fix, code="needs-slurm")


RULES: tuple[Rule, ...] = (slurm_names, unsupported, team_budgets)
AWS_RULES: tuple[AwsRule, ...] = (home, on_pcs, in_a_cluster, reserved_names, login_node, offers)
