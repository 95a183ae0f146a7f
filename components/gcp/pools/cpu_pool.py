"""A group of identical nodes without GPUs, for jobs: preparing data, evaluating, testing."""

from collections.abc import Iterator

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.pools import config
from components.gcp.pools.args import PoolArgs, common_problems
from components.gcp.pools.config import RESERVED_LABELS
from infra.catalog.gcp import facts
from infra.errors import Problem, UserError
from smoke_training.fabric import Fabric


class GcpCpuPoolArgs(PoolArgs):
    """What a `GcpCpuPool` is made of; `capacity` is `on_demand` or `spot`."""


class GcpCpuPool(Component):
    """A GKE node pool for jobs that ask for no GPU; other pods go there only for want of room.

    Raises UserError with every impossible combination.
    """

    pool_id: pulumi.Output[str]
    """Id of the node pool: its cluster's, and its name."""
    labels: dict[str, str]
    """The labels of every node: what pods and resource flavors select."""

    def __init__(self, name: str, args: GcpCpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        problems = [*common_problems(args), *_problems(args)]
        if problems:
            raise UserError(problems)
        self.labels = {
            f"{RESERVED_LABELS}pool": args["pool"],
            f"{RESERVED_LABELS}purpose": args["purpose"],
            f"{RESERVED_LABELS}capacity": args["capacity"].replace("_", "-"),
            f"{RESERVED_LABELS}fabric": Fabric.TCP,
        }
        # No job has to tolerate this. A pod of the system that strayed here would keep the node for ever.
        away = gcp.container.NodePoolNodeConfigTaintArgs(
            key=f"{RESERVED_LABELS}pool", value=args["pool"], effect="PREFER_NO_SCHEDULE"
        )
        # A plain attribute: a handle for `depends_on` inside one program, not part of the schema.
        self.node_pool = gcp.container.NodePool(
            config.pool_name(f"{name}-nodes"),
            cluster=args["cluster"],
            location=args["location"],
            node_locations=list(args["zones"]),
            max_pods_per_node=args["pods_per_node"],
            autoscaling=config.autoscaling(
                args["min_size"], args["max_size"], anywhere=args["capacity"] == "spot"
            ),
            management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
            upgrade_settings=config.upgrades(args["max_size"], spare=True),
            node_drain_configs=config.draining(),
            network_config=gcp.container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
            node_config=config.common(args, self.labels, [away], disk_type=config.boot_disk(args["machine"])),
            opts=self.child(pulumi.ResourceOptions(ignore_changes=config.IGNORED)),
        )
        self.pool_id = self.node_pool.id
        self.register_outputs({"pool_id": self.pool_id, "labels": self.labels})


def _problems(args: GcpCpuPoolArgs) -> Iterator[Problem]:
    pool, machine, bought = args["pool"], args["machine"], args["capacity"]
    if machine in facts.machine_types:
        fix = "Use a type without GPUs, such as n4-standard-8, or a GPU pool."
        yield Problem(f"{pool}.machine", machine, "has GPUs", fix)
    if bought not in ("on_demand", "spot"):
        fix = "Buy them on_demand or spot."
        yield Problem(f"{pool}.capacity", bought, "nodes without GPUs are not reserved", fix)
