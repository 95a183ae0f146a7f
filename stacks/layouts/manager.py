"""The manager of several clusters: queues, quotas and budgets of all, no nodes for jobs (docs/adr/0094)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.kubernetes.clusters import manager
from components.kubernetes.clusters.dispatching import Dispatching
from components.kubernetes.clusters.manager import ClusterArgs
from components.kubernetes.people import SubjectArgs
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.queueing.quotas import FlavorArgs
from components.kubernetes.training.trainer import Trainer
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE
from infra.naming import cluster_pool
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout, InClusterMonitoring
from infra.stackspec.model import demanded
from infra.stackspec.several.derived import layout_of
from stacks.accounting import gpu_ledger, shares_of
from stacks.admission import admission, refuses
from stacks.clusters import DispatcherIdentity, ManagerCloud, WorkerStack
from stacks.layouts.cluster import gpu_offers, identity, of_one_machine, team
from stacks.monitoring import monitored
from stacks.parts import Cluster, ClusterT, NodePool


def manager_of_clusters(
    cloud: ManagerCloud[ClusterT], spec: StackSpec, layout: ClusterLayout, workers: Sequence[WorkerStack]
) -> dict[str, Any]:
    """Declare the stack; its outputs are those of `infra.outputs.manager.ManagerOutputs`."""
    image = demanded(spec.tracking).image
    cluster = cloud.cluster()
    system = cloud.pools(cluster)
    cloud.disks(cluster)
    policed = admission(spec, layout, cluster)
    pools = {one.cluster.name: cloud.records(one.spec) for one in workers}
    by_name = {name: pool for of_one in pools.values() for name, pool in of_one.items()}
    queueing = _queueing(
        spec,
        cluster,
        workers,
        pools,
        people=cloud.people(cluster),
        policed=policed,
        image=image,
        ending=refuses(spec, layout),
    )
    if isinstance(layout.monitoring, InClusterMonitoring):
        alerting = cloud.alerting(cluster)
        monitored(
            spec,
            layout,
            layout.monitoring,
            cluster=cluster,
            pools=system,
            agents=cloud.agents(),
            image=image,
            alerting=alerting,
            place="manager",
        )
    # The queue has the jobs of all clusters, so its books are the sum, and budgets are checked here alone.
    gpu_ledger(
        spec,
        cluster=cluster,
        pools=by_name,
        queueing=queueing,
        image=image,
        shares=_shares(workers),
        measured=False,
    )
    dispatcher = cloud.dispatcher(cluster, workers)
    _dispatching(spec, workers, dispatcher, image, cluster.after(queueing, *dispatcher.ready))
    return {
        **identity(spec),
        "cluster_name": cluster.name,
        "kubeconfig": cluster.kubeconfig,
        "clusters": {one.cluster.name: one.spec.name for one in workers},
        "connected": [one["name"] for one in dispatcher.workers],
        "pools": list(by_name),
        "teams": [
            {"name": one.name, "namespace": queueing.team_namespaces[one.name], "queue": DEFAULT_QUEUE}
            for one in spec.teams
        ],
        "budget": cloud.budget(),
    }


def _dispatching(
    spec: StackSpec,
    workers: Sequence[WorkerStack],
    dispatcher: DispatcherIdentity,
    image: str,
    opts: pulumi.ResourceOptions,
) -> None:
    Dispatching(
        f"{spec.name}-dispatching",
        {
            "workers": dispatcher.workers,
            "names": [one.cluster.name for one in workers],
            "image": image,
            "identity_ports": dispatcher.identity_ports,
        },
        opts,
    )


def clusters(
    workers: Sequence[WorkerStack], pools: Mapping[str, Mapping[str, NodePool]]
) -> list[ClusterArgs]:
    """The clusters with their pools by short names, as `manager.flavors` takes them."""
    return [
        {
            "name": one.cluster.name,
            "flavors": [
                _named(pools[one.cluster.name][cluster_pool(one.cluster.name, pool.name)].flavor, pool.name)
                for pool in one.cluster.pools
            ],
        }
        for one in workers
    ]


def _shares(workers: Sequence[WorkerStack]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in workers:
        found |= shares_of(one.spec, layout_of(one.spec))
    return found


def _named(flavor: FlavorArgs, name: str) -> FlavorArgs:
    return {**flavor, "name": name}


def _queueing(
    spec: StackSpec,
    cluster: Cluster,
    workers: Sequence[WorkerStack],
    pools: Mapping[str, Mapping[str, NodePool]],
    *,
    people: Mapping[str, Sequence[SubjectArgs]],
    policed: pulumi.Resource,
    image: str,
    ending: bool,
) -> Queueing:
    """Queues with the quotas of all clusters, and the runtimes of each, by the same names."""
    by_name = {name: pool for of_one in pools.values() for name, pool in of_one.items()}
    trainer = Trainer(
        f"{spec.name}-trainer",
        {
            "pools": gpu_offers(by_name),
            "machines": of_one_machine(by_name),
            "image": spec.smoke.image,
            "ready_image": image,
            "control_plane": cluster.control_plane,
        },
        cluster.after(policed),
    )
    of_clusters = clusters(workers, pools)
    return Queueing(
        f"{spec.name}-queueing",
        {
            "flavors": manager.flavors(of_clusters),
            "teams": [
                {**one, "people": people[one["name"]]}
                for one in manager.teams(of_clusters, [team(row) for row in spec.teams])
            ],
            "gate": {"nodes": {}},
            "ready_image": image,
            "control_plane": cluster.control_plane,
            "ending": ending,
            "sends": {"stack": spec.name, "clusters": [one.cluster.name for one in workers]},
        },
        cluster.after(trainer),
    )
