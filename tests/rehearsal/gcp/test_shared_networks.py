"""Pools share the networks beside their GPUs, also in a stack whose pools had networks of their own."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp
from pulumi import automation

from components.gcp.cluster.kubeconfig import kubeconfig
from components.gcp.network.accelerators import GcpAcceleratorNetworks
from components.gcp.network.objects import GcpNetworkObjects
from components.gcp.network.ranges import plan_ranges
from infra.catalog.gcp import facts
from infra.catalog.gcp.gpu_networks import FastPool
from infra.engine.plan import PreviewPlan
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.gcp.nodes import gke_nodes
from stacks.clouds.gcp.gpu_networks import gpu_networks
from stacks.providers import gcp_provider, kubernetes_provider
from tests.rehearsal.runs.updates import refused
from trainstack.plans.drains import drains

Select = Callable[[Callable[[], None]], automation.Stack]
Transform = Callable[[pulumi.ResourceTransformArgs], pulumi.ResourceTransformResult | None]
ULTRA = "a3-ultragpu-8g"
MACHINE, PROJECT, REGION, ZONE = "a3-megagpu-8g", "research", "us-central1", "us-central1-a"
RANGES = plan_ranges("10.0.0.0/16", pods_per_node=32)
NAMES = ("h100", "flex")


class Base:
    """A cluster and its providers."""

    def __init__(self) -> None:
        self.google = gcp_provider("google", project=PROJECT, region=REGION, labels={})
        self.on_google = pulumi.ResourceOptions(providers=[self.google])
        own = pulumi.ResourceOptions(provider=self.google)
        network = gcp.compute.Network("net", auto_create_subnetworks=False, opts=own)
        subnetwork = gcp.compute.Subnetwork(
            "nodes",
            network=network.id,
            ip_cidr_range=RANGES.nodes,
            secondary_ip_ranges=[{"range_name": "pods", "ip_cidr_range": RANGES.pods}],
            opts=own,
        )
        self.cluster = gcp.container.Cluster(
            "gke",
            location=REGION,
            network=network.name,
            subnetwork=subnetwork.name,
            remove_default_node_pool=True,
            initial_node_count=1,
            deletion_protection=False,
            enable_multi_networking=True,
            datapath_provider="ADVANCED_DATAPATH",
            ip_allocation_policy={"cluster_secondary_range_name": "pods"},
            opts=own,
        )
        login = pulumi.Output.all(self.cluster.name, self.cluster.endpoint).apply(
            lambda known: kubeconfig(known[0], f"https://{known[1]}")
        )
        inside = kubernetes_provider("inside", kubeconfig=login, cluster=self.cluster.name)
        self.inside = pulumi.ResourceOptions(providers=[inside])

    def nodes(self, name: str, networks: Sequence[Any], *, machine: str = MACHINE, zone: str = ZONE) -> None:
        """A pool of up to two machines in these networks."""
        accelerator = facts.machine_type(machine).accelerator
        gcp.container.NodePool(
            f"dev-{name}-nodes",
            cluster=self.cluster.name,
            location=REGION,
            node_locations=[zone],
            autoscaling={"total_min_node_count": 1, "total_max_node_count": 2},
            node_config={
                "machine_type": machine,
                "spot": True,
                "guest_accelerators": [{"type": accelerator, "count": 8}],
            },
            network_config={"additional_node_network_configs": [*networks]},
            opts=pulumi.ResourceOptions(provider=self.google),
        )


def _of_the_pool(name: str) -> Transform:
    """Descriptions as they were: they named the pool, and cannot be changed."""

    def change(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not args.type_.endswith("network:Network"):
            return None
        return pulumi.ResourceTransformResult({**args.props, "description": f"of {name}"}, args.opts)

    return change


def apart(*names: str) -> Callable[[], None]:
    """The program of earlier versions: pools with networks of their own."""

    def program() -> None:
        base = Base()
        for name in names:
            opts = pulumi.ResourceOptions(providers=[base.google], transforms=[_of_the_pool(name)])
            made = GcpAcceleratorNetworks(
                f"dev-{name}",
                {
                    "project": PROJECT, "region": REGION, "zone": ZONE, "machines": [MACHINE],
                    "gvnic": RANGES.rdma[0].gvnic, "accelerators": RANGES.accelerators,
                },
                opts,
            )  # fmt: skip
            objects: Any = [{**one, "name": f"{name}-{one['name']}"} for one in made.objects]
            GcpNetworkObjects(f"dev-{name}-networks", {"networks": objects}, base.inside)
            base.nodes(name, made.attachments)

    return program


def shared(*names: str) -> Callable[[], None]:
    """The program of today."""

    def program() -> None:
        base = Base()
        pools = [FastPool(name, name, MACHINE, ZONE, 2, classic=True) for name in names]
        _made(base, pools)

    return program


def rdma(*zones: str, first: str | None = None) -> Callable[[], None]:
    """Pools of A3 Ultra, one in each zone, whose networks the stack makes."""

    def program() -> None:
        base = Base()
        pools = [FastPool(zone, zone, ULTRA, f"{REGION}-{zone}", 2, classic=True) for zone in zones]
        _made(base, pools, first=first and f"{REGION}-{first}")

    return program


def _made(base: Base, pools: Sequence[FastPool], first: str | None = None) -> None:
    made = gpu_networks(
        "dev",
        pools,
        first_rdma_zone=first,
        project=PROJECT,
        region=REGION,
        ranges=RANGES,
        opts=base.on_google,
    )
    made.objects(base.inside)
    for pool in pools:
        base.nodes(pool.name, made.attachments(pool.name) or (), machine=pool.machine, zone=pool.zone)


def steps(stack: automation.Stack) -> Counter[tuple[str, str]]:
    """Changes of a preview, by kind."""
    plan = PreviewPlan()
    cast(Any, plan.listening(lambda on_event: cast(Any, stack.preview(on_event=on_event))))(lambda _: None)
    return Counter((step.operation, step.type.rpartition(":")[2]) for step in plan.steps)


def devices(rehearsal: Rehearsal) -> dict[str, set[str]]:
    """Networks that nodes of each pool have as resources."""
    state = State(rehearsal.home / "state.sqlite")
    try:
        (cluster,) = state.find(type="gcp:container/cluster:Cluster")
        nodes = gke_nodes(KubeCluster(state, cluster))
        return {
            node.labels["cloud.google.com/gke-nodepool"].split("-")[1]: {
                name.rpartition("/")[2]
                for name in node.extended
                if not name.endswith(".IP") and "/vpc" in name
            }
            for node in nodes
            if "gpu" in node.labels["node.kubernetes.io/instance-type"]
        }
    finally:
        state.close()


def names(rehearsal: Rehearsal) -> set[str]:
    """Network objects of the cluster."""
    state = State(rehearsal.home / "state.sqlite")
    try:
        found = state.find(type="kubernetes:networking.gke.io/v1:Network")
        return {str(one.inputs["metadata"]["name"]) for one in found}
    finally:
        state.close()


def test_pools_with_equal_ranges_in_networks_of_their_own_are_refused(stack: Select) -> None:
    assert "GCP-GPU-011" in refused(stack(apart(*NAMES)))


def test_networks_of_a_pool_become_those_of_all_and_its_nodes_stay(
    rehearsal: Rehearsal, stack: Select
) -> None:
    stack(apart("h100")).up()
    plan = PreviewPlan()
    both = stack(shared(*NAMES))
    cast(Any, plan.listening(lambda on_event: cast(Any, both.preview(on_event=on_event))))(lambda _: None)
    done = Counter((step.operation, step.type.rpartition(":")[2]) for step in plan.steps)

    assert [*drains(plan.steps)] == []
    assert done == {
        ("create", "NodePool"): 1,
        # Their names change, so they are deleted first: the parameters of a subnetwork exist once.
        ("replace", "Network"): 8,
        ("replace", "GKENetworkParamSet"): 8,
    }
    said: list[str] = []
    both.up(on_output=said.append)
    assert "K8S-GKE-001" not in "".join(said)
    assert devices(rehearsal) == {name: {f"vpc{number}" for number in range(1, 9)} for name in NAMES}
    assert not steps(stack(shared(*reversed(NAMES))))


def test_networks_of_a_zone_keep_their_names_when_others_come_and_go(
    rehearsal: Rehearsal, stack: Select
) -> None:
    stack(rdma("b")).up()
    plain = {"gvnic-1", *(f"rdma-{number}" for number in range(8))}
    assert names(rehearsal) == plain
    # An earlier zone comes, and the order of pools does not matter.
    both = stack(rdma("a", "b", first="b"))
    assert {operation for operation, _ in steps(both)} == {"create"}
    said: list[str] = []
    both.up(on_output=said.append)
    assert "K8S-GKE-001" not in "".join(said)
    assert names(rehearsal) == plain | {one.replace("-", "-a-", 1) for one in plain}
    assert not steps(stack(rdma("b", "a", first="b")))
    # Either leaves, and the other has what it had.
    assert {operation for operation, _ in steps(stack(rdma("b")))} == {"delete"}
    stack(rdma("a", first="b")).up()
    assert names(rehearsal) == {one.replace("-", "-a-", 1) for one in plain}


def test_a_pool_that_moves_to_another_zone_gets_other_objects(stack: Select) -> None:
    """They cannot be changed: the API server would refuse another subnetwork of the same object."""
    stack(rdma("b")).up()
    done = steps(stack(rdma("a")))
    assert done[("replace", "GKENetworkParamSet")] == 9
    assert not [kind for operation, kind in done if operation == "update" and kind != "NodePool"]
