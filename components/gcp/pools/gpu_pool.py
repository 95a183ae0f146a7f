"""A group of identical GPU nodes on GKE: networks, placement, payment, and labels and taints."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.pools import config
from components.gcp.pools.gpu_pool_args import GcpGpuPoolArgs, managed, pool_problems
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import MachineType
from infra.catalog.gcp.pools import DYNAMIC, PREPAID
from infra.catalog.pools import RESERVED_LABELS
from infra.errors import UserError
from smoke_training.fabric import Fabric

TAINT_KEY = "nvidia.com/gpu"
TAINT_VALUE = "present"
QUEUED_KEY = "cloud.google.com/gke-queued"
"""Taint of GKE's nodes of queued provisioning, and the label that it does not set on them."""
_DRANET = "cloud.google.com/gke-networking-dra-driver"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
# For sockets beside the fabric: data sets, checkpoints, rendezvous (cluster-toolkit@10470803
# modules/compute/gke-node-pool/main.tf).
_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 87380 16777216", "net.ipv4.tcp_wmem": "4096 16384 16777216"}


class GcpGpuPool(Component):
    """A GKE node pool with its driver, the networks of its GPUs and its placement.

    GKE replaces all nodes for another version, machine, disk or setting of the operating system, and the pool
    itself for another payment, GPU, network or account; bounds, labels, taints and cost labels change without
    replacing running nodes (`trainstack/plans/drains.py`). Raises UserError with every impossible
    combination; UnknownFactError for a type the catalog lacks. Untested in a real project.
    """

    pool_id: pulumi.Output[str]
    """Id of the node pool: its cluster's, and its name."""
    labels: dict[str, str]
    """The labels of every node, for selectors of pods and resource flavors."""
    taints: dict[str, str]
    """The taints of every node by key, as `value:Effect`."""

    def __init__(self, name: str, args: GcpGpuPoolArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        machine = facts.machine_type(args["machine"])
        problems = pool_problems(args, machine)
        if problems:
            raise UserError(problems)
        self._prefix = name
        self.labels = node_labels(args, machine)
        self.taints = {TAINT_KEY: f"{TAINT_VALUE}:NoSchedule"}
        if args["purchase"] == "queued":
            self.taints[QUEUED_KEY] = "true:NoSchedule"
        # A plain attribute: a handle for `depends_on` inside one program, not part of the schema.
        self.node_pool = self._node_pool(args, machine)
        self.pool_id = self.node_pool.id
        self.register_declared()

    def _node_pool(self, args: GcpGpuPoolArgs, machine: MachineType) -> gcp.container.NodePool:
        purchase = args["purchase"]
        return gcp.container.NodePool(
            config.pool_name(f"{self._prefix}-nodes"),
            cluster=args["cluster"],
            location=args["location"],
            node_locations=list(args["zones"]),
            max_pods_per_node=args["pods_per_node"],
            # Machines with GPUs are scarce: availability matters more than an even spread.
            autoscaling=config.autoscaling(args["min_nodes"], args["max_nodes"], anywhere=True),
            queued_provisioning=gcp.container.NodePoolQueuedProvisioningArgs(enabled=True)
            if purchase == "queued"
            else None,
            # GKE refuses to repair nodes that it could not get again, and to upgrade those of the queue. All
            # others must be upgradable; the cluster's maintenance policy decides when and whether.
            management=gcp.container.NodePoolManagementArgs(
                auto_repair=purchase not in DYNAMIC, auto_upgrade=purchase != "queued"
            ),
            # Old nodes end before new ones start: spare GPUs for both are rarely available. Nodes of Dynamic
            # Workload Scheduler are upgraded as they end, which GKE sets itself.
            upgrade_settings=None if purchase in DYNAMIC else config.upgrades(args["max_nodes"], spare=False),
            node_drain_configs=config.draining(),
            placement_policy=gcp.container.NodePoolPlacementPolicyArgs(type="COMPACT")
            if args["compact"]
            else None,
            network_config=_network(args),
            node_config=_nodes(args, machine, self.labels),
            opts=self.child(
                pulumi.ResourceOptions(
                    ignore_changes=config.IGNORED,
                    # The same reserved machines cannot be in two pools at once.
                    delete_before_replace=purchase in PREPAID,
                )
            ),
        )


def fabric(args: GcpGpuPoolArgs, machine: MachineType) -> Fabric:
    """The fabric between the nodes of a pool."""
    return Fabric(machine.fabric) if args["rdma"] and machine.fabric else Fabric.TCP


def node_labels(args: GcpGpuPoolArgs, machine: MachineType) -> dict[str, str]:
    """The labels of a pool's nodes; GKE adds `cloud.google.com/gke-accelerator` and others itself."""
    return {
        **args["labels"],
        f"{RESERVED_LABELS}pool": args["pool"],
        f"{RESERVED_LABELS}purpose": args["purpose"],
        f"{RESERVED_LABELS}accelerator": machine.accelerator,
        f"{RESERVED_LABELS}capacity": args["purchase"].replace("_", "-"),
        f"{RESERVED_LABELS}fabric": fabric(args, machine),
        **({_DRANET: "true"} if managed(args) else {}),
        **({QUEUED_KEY: "true"} if args["purchase"] == "queued" else {}),
    }


def _network(args: GcpGpuPoolArgs) -> gcp.container.NodePoolNetworkConfigArgs:
    further = [
        gcp.container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs(
            network=one["network"], subnetwork=one["subnetwork"]
        )
        for one in args.get("attachments", ())
    ]
    return gcp.container.NodePoolNetworkConfigArgs(
        enable_private_nodes=True,
        additional_node_network_configs=further or None,
        accelerator_network_profile="auto" if managed(args) else None,
    )


def _nodes(
    args: GcpGpuPoolArgs, machine: MachineType, labels: dict[str, str]
) -> gcp.container.NodePoolNodeConfigArgs:
    # Keeps pods without a GPU request off these nodes. GKE adds the taint of the queue itself.
    taint = gcp.container.NodePoolNodeConfigTaintArgs(key=TAINT_KEY, value=TAINT_VALUE, effect="NO_SCHEDULE")
    found = config.common(args, labels, [taint])
    found.guest_accelerators = [_accelerator(args, machine)]
    found.flex_start = True if args["purchase"] in DYNAMIC else None
    found.reservation_affinity = _reservation(args)
    found.gpudirect_strategy = "RDMA" if managed(args) else None
    found.linux_node_config = gcp.container.NodePoolNodeConfigLinuxNodeConfigArgs(sysctls=_SYSCTLS)
    if machine.static_cpu:
        found.kubelet_config = _whole_processors()
    ssds = args.get("local_ssds", machine.local_ssds)
    if ssds:
        found.ephemeral_storage_local_ssd_config = (
            gcp.container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(local_ssd_count=ssds)
        )
    if "image_cache" in args:
        cache = gcp.container.NodePoolNodeConfigSecondaryBootDiskArgs(
            disk_image=args["image_cache"], mode="CONTAINER_IMAGE_CACHE"
        )
        found.secondary_boot_disks = [cache]
    return found


def _whole_processors() -> gcp.container.NodePoolNodeConfigKubeletConfigArgs:
    """Pods that request whole processors own them, near their GPU and their memory."""
    return gcp.container.NodePoolNodeConfigKubeletConfigArgs(
        insecure_kubelet_readonly_port_enabled="FALSE",
        cpu_manager_policy="static",
        memory_manager=gcp.container.NodePoolNodeConfigKubeletConfigMemoryManagerArgs(policy="Static"),
        topology_manager=gcp.container.NodePoolNodeConfigKubeletConfigTopologyManagerArgs(
            policy="restricted"
        ),
    )


def _accelerator(
    args: GcpGpuPoolArgs, machine: MachineType
) -> gcp.container.NodePoolNodeConfigGuestAcceleratorArgs:
    driver = gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
        gpu_driver_version=args["driver"].upper()
    )
    found = gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
        type=machine.accelerator, count=machine.count, gpu_driver_installation_config=driver
    )
    sharing = args.get("sharing")
    if sharing and sharing["kind"] == "mig":
        found.gpu_partition_size = sharing["partition"]
    elif sharing:
        found.gpu_sharing_config = gcp.container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
            gpu_sharing_strategy="TIME_SHARING", max_shared_clients_per_gpu=sharing["clients"]
        )
    return found


def _reservation(args: GcpGpuPoolArgs) -> gcp.container.NodePoolNodeConfigReservationAffinityArgs | None:
    """Prepaid nodes use only their reservation; on-demand ones may use open ones; the others use none."""
    if args["purchase"] in PREPAID:
        # Never fall back to on-demand silently: that pays twice, for the reservation and for the node.
        return gcp.container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="SPECIFIC_RESERVATION",
            key=_RESERVATION_KEY,
            values=[args["reservation_id"]],
        )
    if args["purchase"] == "on_demand":
        return None
    return gcp.container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
