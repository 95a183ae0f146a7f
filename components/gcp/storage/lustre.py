"""Managed Lustre: the fast tier, in one zone, beside the GPUs."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from infra.catalog.gcp.lustre import size_problems
from infra.errors import UserError
from infra.naming import sanitize

FILE_SYSTEM = "lustre"
"""Name of the file system, of at most eight characters. No two instances that one node mounts may have the
same: their devices would have the same number (lustre-csi-driver, docs/troubleshooting.md)."""


class GcpLustreArgs(TypedDict):
    """Size and place of one file system."""

    zone: str
    """The zone, best that of the nodes which train."""
    network_id: pulumi.Input[str]
    """Id of the VPC network of its clients, which has private service access."""
    capacity_gib: int
    """Storage in GiB; the steps depend on the throughput (see the catalog)."""
    throughput_mb_s_per_tib: int
    """125, 250, 500 or 1000 MB/s per TiB; another value is another file system."""
    protect: NotRequired[bool]
    """Refuse to delete the file system (Lustre has no such switch, so Pulumi refuses). Default: yes."""


class GcpLustre(Component):
    """A Managed Lustre instance for nodes of GKE.

    Encrypted with a key of Google's: an instance with a key of ours cannot be used from GKE (Managed Lustre
    documentation, "Customer-managed encryption keys", Limitations). Clients use port 988, that of
    Lustre; the other one, which `gkeSupportEnabled` opens, is for GKE before 1.33.2-gke.4655000.

    It is in one zone and has no backups. `GcpLustreCopies` copies parts of it to buckets.

    Raises UserError for a size that is not offered. *Untested on hardware.*
    """

    instance: pulumi.Output[str]
    """`projects/<project>/locations/<zone>/instances/<name>`."""
    address: pulumi.Output[str]
    """IP address of its servers."""
    file_system: pulumi.Output[str]
    """Name of the file system on them."""

    def __init__(self, name: str, args: GcpLustreArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        size, throughput = args["capacity_gib"], args["throughput_mb_s_per_tib"]
        paths = f"{name}.capacity_gib", f"{name}.throughput_mb_s_per_tib"
        if problems := list(size_problems(paths[0], size, paths[1], throughput)):
            raise UserError(problems)
        system = gcp.lustre.Instance(
            name,
            instance_id=sanitize(name),
            location=args["zone"],
            network=args["network_id"],
            filesystem=FILE_SYSTEM,
            capacity_gib=str(size),
            per_unit_storage_throughput=str(throughput),
            gke_support_enabled=False,
            # A second one could not have the same name.
            opts=self.child(
                pulumi.ResourceOptions(protect=args.get("protect", True), delete_before_replace=True)
            ),
        )
        self.instance = system.name
        self.address = system.mount_point.apply(address)
        self.file_system = system.filesystem
        self.register_declared()


def address(mount_point: str) -> str:
    """The servers in a mount point, `<address>@tcp:/<file system>`."""
    return mount_point.partition("@")[0]
