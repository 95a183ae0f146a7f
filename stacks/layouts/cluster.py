"""One Kubernetes cluster with pools, shared storage, queues, tracking and a budget."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi

from components.kubernetes.accelerators import Accelerators, AcceleratorsArgs
from components.kubernetes.offers import NodeOffer
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.queueing.quotas import GateArgs, TeamArgs
from components.kubernetes.training.trainer import Trainer
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout, InClusterMonitoring
from infra.stackspec.stack import TeamSpec
from stacks.accounting import gpu_ledger, shares_of
from stacks.admission import admission, refuses
from stacks.idle import idle_gpus
from stacks.monitoring import monitored
from stacks.parts import Cluster, ClusterCloud, ClusterT, NodePool, Pools, Store, StoreT, TeamData, Tracking
from stacks.teams import logins, team_volumes, teams_at_work, visitors
from stacks.validation import PODS, validations
from stacks.windows import capacity_windows


def one_cluster(
    cloud: ClusterCloud[ClusterT, StoreT],
    spec: StackSpec,
    layout: ClusterLayout,
    joined: Callable[[ClusterT, Queueing], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Declare the stack; returns `infra.outputs.cluster.StackOutputs`, with what `joined` adds to them."""
    cluster = cloud.cluster()
    pools = cloud.pools(cluster)
    store = cloud.store(cluster)
    accelerators = Accelerators(f"{spec.name}-accelerators", _devices(pools), cluster.inside)
    tracking = cloud.tracking(cluster, store)
    policed = admission(spec, layout, cluster)
    data = cloud.teams(cluster, store)
    strict = refuses(spec, layout)
    queueing = _queueing(spec, cluster, pools, tracking, data=data, policed=policed, ending=strict)
    windows = capacity_windows(spec, cluster=cluster, pools=pools, queueing=queueing, tracking=tracking)
    teams = teams_at_work(spec, data, cluster=cluster, store=store, queueing=queueing, tracking=tracking)
    visitors(spec, data, cluster, tracking)
    if isinstance(layout.monitoring, InClusterMonitoring):
        monitored(
            spec,
            layout,
            layout.monitoring,
            cluster=cluster,
            pools=pools,
            agents=tracking.grants["agents"],
            image=tracking.image,
            alerting=cloud.alerting(cluster),
            place="worker" if joined else None,
        )
    idle_gpus(spec, layout, cluster, queueing, tracking)
    login = logins(spec, cluster, queueing, tracking)
    _ledger(spec, layout, cluster=cluster, pools=pools, queueing=queueing, tracking=tracking)
    others = joined(cluster, queueing) if joined else {"budget": cloud.budget()}
    smoke: Sequence[Mapping[str, Any]] = ()
    # The gate does not wait for the budget: an account without permission for budgets can train.
    if spec.smoke.enabled:
        smoke = validations(
            spec,
            cluster=cluster,
            pools=pools.by_name,
            store=store,
            tracking=tracking,
            queueing=queueing,
            login=login.secret,
            access=cloud.validation(cluster, store, PODS),
            after=[accelerators, store.ready, *pools.ready, *windows],
        )
    return {
        **identity(spec),
        "cluster_name": cluster.name,
        "kubeconfig": cluster.kubeconfig,
        **_services(tracking, store),
        "pools": list(pools.by_name),
        "teams": teams,
        "smoke": smoke,
        **others,
    }


def _ledger(
    spec: StackSpec,
    layout: ClusterLayout,
    *,
    cluster: Cluster,
    pools: Pools,
    queueing: Queueing,
    tracking: Tracking,
) -> None:
    gpu_ledger(
        spec,
        cluster=cluster,
        pools=pools.by_name,
        queueing=queueing,
        image=tracking.image,
        shares=shares_of(spec, layout),
        measured=layout.monitoring.kind == "in_cluster",
    )


def _services(tracking: Tracking, store: Store) -> dict[str, Any]:
    return {
        "mlflow_url": tracking.url,
        "mlflow_admin_secret": tracking.admin_secret,
        "mlflow_way_in": _way_in(tracking),
        "checkpoint_uri": store.checkpoint_uri,
        "dataset_uri": store.dataset_uri,
        "artifact_uri": store.artifact_uri,
    }


def identity(spec: StackSpec) -> dict[str, str]:
    """Outputs that name the stack."""
    fields = ("cloud", "region", "profile", "owner", "cost_center")
    return {"stack": spec.name, **{field: getattr(spec, field) for field in fields}}


def _devices(pools: Pools) -> AcceleratorsArgs:
    with_gpus = [name for name, pool in pools.by_name.items() if pool.offer["gpus"]]
    devices: AcceleratorsArgs = {"gpu_pools": with_gpus, "drivers": pools.drivers}
    if pools.devices_managed:
        devices["managed"] = True
    if pools.sharing:
        devices["sharing"] = pools.sharing
    if pools.host_engine_port is not None:
        devices["host_engine_port"] = pools.host_engine_port
    return devices


def _way_in(tracking: Tracking) -> Mapping[str, Any] | None:
    found = tracking.way_in
    return {"url": found.url, "target": found.target} if found else None


def gpu_offers(pools: Mapping[str, NodePool]) -> dict[str, NodeOffer]:
    """Resources of a node of each pool with GPUs."""
    return {name: pool.offer for name, pool in pools.items() if pool.offer["gpus"]}


def of_one_machine(pools: Mapping[str, NodePool]) -> dict[str, list[str]]:
    """Pools with GPUs behind the common queues, by machine type."""
    found: dict[str, list[str]] = {}
    for name, pool in pools.items():
        if pool.offer["gpus"] and not pool.flavor.get("own_queue"):
            found.setdefault(pool.machine, []).append(name)
    return found


def _queueing(
    spec: StackSpec,
    cluster: Cluster,
    pools: Pools,
    tracking: Tracking,
    *,
    data: Mapping[str, TeamData],
    policed: pulumi.Resource,
    ending: bool,
) -> Queueing:
    """Queues, and with them all namespaces of jobs, after the policies for their objects."""
    trainer = Trainer(
        f"{spec.name}-trainer",
        {
            "pools": gpu_offers(pools.by_name),
            "machines": of_one_machine(pools.by_name),
            # The image of the validation is also that of team jobs.
            "image": spec.smoke.image,
            "ready_image": tracking.image,
            "control_plane": cluster.control_plane,
        },
        cluster.after(policed),
    )
    return Queueing(
        f"{spec.name}-queueing",
        {
            "flavors": [pool.flavor for pool in pools.by_name.values()],
            "teams": [{**team(one), "people": data[one.name].people} for one in spec.teams],
            "gate": gate(spec),
            "ready_image": tracking.image,
            "control_plane": cluster.control_plane,
            "ending": ending,
            "before": team_volumes(spec, data, cluster),
        },
        cluster.after(trainer),
    )


def gate(spec: StackSpec) -> GateArgs:
    """Queue settings of the validation of a deployment."""
    return {
        "nodes": spec.validated,
        "scheduled": spec.smoke.enabled and spec.smoke.schedule is not None,
        "drain": spec.smoke.drain,
    }


def team(one: TeamSpec) -> TeamArgs:
    """Queue settings of a team, without its members."""
    return {
        "name": one.name,
        "weight": one.weight,
        "gpus": one.guarantees,
        "budgeted": one.over_budget == "stop",
    }
