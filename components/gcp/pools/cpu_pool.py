"""A group of identical nodes without GPUs, for jobs: preparing data, evaluating, testing."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.pools import config
from components.gcp.pools.args import PoolArgs, common_problems
from infra.catalog.gcp import pools
from infra.catalog.pools import RESERVED_LABELS
from infra.errors import UserError
from smoke_training.fabric import Fabric


class GcpCpuPoolArgs(PoolArgs):
    """Arguments of a `GcpCpuPool`; `purchase` is `on_demand` or `spot`."""


class GcpCpuPool(Component):
    """A GKE node pool for jobs without GPUs; other pods run there only for lack of space.

    Raises UserError with every impossible combination.
    """

    pool_id: pulumi.Output[str]
    """Id of the node pool: its cluster's, and its name."""
    labels: dict[str, str]
    """The labels of every node, for selectors of pods and resource flavors."""

    def __init__(self, name: str, args: GcpCpuPoolArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        problems = [
            *common_problems(args),
            *pools.cpu_problems(f"{args['pool']}.machine", args["machine"]),
            *pools.cpu_purchase_problems(f"{args['pool']}.purchase", args["purchase"]),
        ]
        if problems:
            raise UserError(problems)
        self.labels = {
            f"{RESERVED_LABELS}pool": args["pool"],
            f"{RESERVED_LABELS}purpose": args["purpose"],
            f"{RESERVED_LABELS}capacity": args["purchase"].replace("_", "-"),
            f"{RESERVED_LABELS}fabric": Fabric.TCP,
        }
        # Jobs need no toleration for this. A system pod on such a node would keep the node forever.
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
                args["min_nodes"], args["max_nodes"], anywhere=args["purchase"] == "spot"
            ),
            management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
            upgrade_settings=config.upgrades(args["max_nodes"], spare=True),
            node_drain_configs=config.draining(),
            network_config=gcp.container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
            node_config=config.common(args, self.labels, [away]),
            opts=self.child(pulumi.ResourceOptions(ignore_changes=config.IGNORED)),
        )
        self.pool_id = self.node_pool.id
        self.register_declared()
