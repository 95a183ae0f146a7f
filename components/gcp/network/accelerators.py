"""The networks of the NICs beside GPUs, shared by pools whose networks GKE does not create itself."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.network.interfaces import GpuInterface, interfaces
from components.gcp.network.subnetwork import custom_network, flow_log, let_in, short
from components.ordering import after
from infra.catalog.gcp import facts, gpu_networks, network
from infra.errors import Problem, UserError


class GcpAcceleratorNetworksArgs(TypedDict):
    """Arguments of a set of networks."""

    project: str
    """The project's id."""
    region: str
    """The region of the pools."""
    zone: str
    """The zone of the pools, where they have RDMA: such a network is in one zone."""
    machines: Sequence[str]
    """The machine types of the pools, such as `a3-megagpu-8g`; all with RDMA, or all without."""
    gvnic: str
    """The range of the second gVNIC; only machines with RDMA have one."""
    accelerators: Sequence[str]
    """Ranges of the NICs beside GPUs, one each; those that no machine needs stay unused."""
    part: NotRequired[str]
    """Part of the names of Network objects that distinguishes sets. Default: none."""


class NodeNetwork(TypedDict):
    """A network of a node pool besides the cluster's: one of its `additionalNodeNetworkConfigs`."""

    network: pulumi.Input[str]
    """Name of the VPC network."""
    subnetwork: pulumi.Input[str]
    """Name of the subnetwork."""


class PodNetworkArgs(TypedDict):
    """The fields of the Kubernetes objects of one interface."""

    name: str
    """Name of the objects."""
    device_mode: str
    """`NetDevice` or `RDMA`."""
    vpc: pulumi.Input[str]
    """Name of the VPC network."""
    subnetwork: pulumi.Input[str]
    """Name of the subnetwork."""


class GcpAcceleratorNetworks(Component):
    """VPC networks for TCPX (4), TCPXO (8), or one for gVNIC and one for RDMA with a subnetwork for each NIC.

    A machine type uses the first ones in order. A network of gVNICs admits its own range. A network with the
    profile `<zone>-vpc-roce` is for RDMA NICs of one zone, allows all traffic by default and takes no VPC
    firewall rules (VPC documentation, "RDMA network profiles"). It rejects what it does not support, so its
    subnetworks have only settings documented there: no flow logs, no Private Google Access. No routes connect
    these networks, and no node has a public address in them. *Untested on hardware.*
    """

    attachments: Sequence[NodeNetwork]
    """Additional networks of pools, in the order of interfaces; usable once traffic is allowed."""

    def __init__(self, name: str, args: GcpAcceleratorNetworksArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        known = {machine: interfaces(machine, args.get("part", "")) for machine in args["machines"]}
        machine = max(known, key=lambda one: len(known[one]))
        nics, needs = known[machine], facts.gpu_networks[machine]
        if problems := _problems(args, machine, needs.rdma_subnetworks or needs.networks):
            raise UserError(problems)
        plain = [args["gvnic"]] if needs.rdma_subnetworks else args["accelerators"][: needs.networks]
        self._prefix = name
        self._args = args
        self._mtu = needs.mtu
        made = [
            self._plain(nic, f"gvnic-{number}" if needs.rdma_subnetworks else f"vpc{number}", cidr)
            for number, (nic, cidr) in enumerate(zip(nics, plain, strict=False), start=1)
        ]
        if needs.rdma_subnetworks:
            made += self._rdma(nics[len(plain) :], args["accelerators"][: needs.rdma_subnetworks])

        self.attachments = [{"network": one["vpc"], "subnetwork": one["subnetwork"]} for one in made]
        # A plain attribute: a handle inside one program, not part of the schema.
        self.objects: Sequence[PodNetworkArgs] = made
        self.register_declared()

    def _plain(self, nic: GpuInterface, part: str, cidr: str) -> PodNetworkArgs:
        name = f"{self._prefix}-{part}"
        network = custom_network(
            self,
            name,
            description=f"{nic.name} of GPU nodes",
            mtu=self._mtu,
            # It cannot be changed, and networks that were a pool's own are continued (docs/adr/0059).
            kept=["description"],
        )
        subnetwork = gcp.compute.Subnetwork(
            short(name),
            network=network.id,
            region=self._args["region"],
            ip_cidr_range=cidr,
            stack_type="IPV4_ONLY",
            log_config=flow_log(),
            opts=self.child(),
        )
        inside = let_in(
            self, f"{name}-in", network=network.id, source=cidr, description="GPU nodes to each other"
        )
        return _pod_network(nic, network.name, after(subnetwork.name, [inside]))

    def _rdma(self, nics: Sequence[GpuInterface], cidrs: Sequence[str]) -> list[PodNetworkArgs]:
        zone, project = self._args["zone"], self._args["project"]
        network = custom_network(
            self,
            f"{self._prefix}-rdma",
            description=f"RDMA between GPUs in {zone}",
            mtu=self._mtu,
            profile=f"projects/{project}/global/networkProfiles/{zone}-vpc-roce",
        )
        return [
            _pod_network(
                nic,
                network.name,
                gcp.compute.Subnetwork(
                    short(f"{self._prefix}-rdma-{number}"),
                    network=network.id,
                    region=self._args["region"],
                    ip_cidr_range=cidr,
                    opts=self.child(),
                ).name,
            )
            for number, (nic, cidr) in enumerate(zip(nics, cidrs, strict=True))
        ]


def _pod_network(
    nic: GpuInterface, vpc: pulumi.Output[str], subnetwork: pulumi.Output[str]
) -> PodNetworkArgs:
    return {"name": nic.network, "device_mode": nic.device_mode, "vpc": vpc, "subnetwork": subnetwork}


def _problems(args: GcpAcceleratorNetworksArgs, machine: str, needed: int) -> list[Problem]:
    problems, ranges = [], list(args["accelerators"])
    if len(ranges) < needed:
        rule = f"{machine} has {needed} NICs beside its GPUs, and each needs a range"
        fix = "Give it those of plan_ranges."
        problems.append(Problem("accelerators", ranges, rule, fix, code="too-few-nic-ranges"))
    sets = sorted({gpu_networks.set_of(one, args["zone"]) for one in args["machines"]})
    if len(sets) > 1:
        rule = "machines with RDMA and others share no networks"
        fix = "Make a set for each."
        problems.append(Problem("machines", list(args["machines"]), rule, fix, code="machines-of-two-sets"))
    return [*problems, *network.zone_problem("zone", args["region"], args["zone"])]
