"""A notebook of one person, which goes off by itself when nobody uses it."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from infra.catalog.gcp.jobs import NOTEBOOK_BOOT_GIB, notebook_problems
from infra.errors import UserError
from infra.naming import sanitize

# An instance has a name of at most 63 characters, of which Pulumi takes eight for what makes it unique.
_NAME = 55


class GcpNotebookArgs(TypedDict):
    """Whose notebook, where, and how large."""

    zone: str
    """The zone, such as `us-central1-a`."""
    person: str
    """Name of the person."""
    email: str
    """Address of the person, who alone can open it."""
    account: pulumi.Input[str]
    """Address of the service account as which it runs."""
    network: pulumi.Input[str]
    """`projects/<project>/global/networks/<name>`."""
    subnetwork: pulumi.Input[str]
    """`projects/<project>/regions/<region>/subnetworks/<name>`, with a way out."""
    key_id: pulumi.Input[str]
    """Key of Cloud KMS in the region, which Compute Engine may use."""
    machine: str
    """Machine type without GPUs, such as `e2-standard-2`."""
    disk_gib: int
    """Disk for the person's files, in GiB."""
    idle_minutes: int
    """After how many minutes without use it is switched off, 10 to 1440."""
    labels: Mapping[str, str]
    """Labels of person and team, by which budgets and their stop know it."""
    role: pulumi.Input[str]
    """`GcpJobRoles.notebook`, which the person gets on it."""
    protect: bool
    """Refuse to delete it, with the files on its disk."""


class GcpNotebook(Component):
    """A Workbench instance: JupyterLab on a machine in the stack's network.

    A Workbench instance rather than a Colab Enterprise runtime: it runs as an account, so what works in it
    works in a job; its terminal and downloads can be switched off, which organizations demand; and it is part
    of this stack, so nothing of it is left when the stack goes. Runtimes of Colab belong to whoever starts
    them, and hold the template and its network until they are found. The price is its disks, which are billed
    while it is off: they are standard persistent disks, which start it slower and cost less than half.

    Only its owner can open it, through Google's proxy; it has no public address. It is a Shielded VM with
    secure boot. The owner is no root and may install packages for herself; the image stays as it is, and is
    upgraded in the night to Sunday. Downloads to the browser and exports (`nbconvert`) are off: what leaves,
    leaves through a bucket with a log. The terminal is on, for git needs one.

    It goes off after `idle_minutes` without use, which it can only tell with guest attributes. What Workbench
    counts as use is not documented in full; a kernel that computes is.
    *Untested in a real project.*
    """

    name: pulumi.Output[str]
    """Name of the instance."""

    def __init__(self, name: str, args: GcpNotebookArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        problems = [*notebook_problems("machine", args["machine"], "idle_minutes", args["idle_minutes"])]
        if problems:
            raise UserError(problems)
        instance = gcp.workbench.Instance(
            sanitize(name, max_length=_NAME),
            location=args["zone"],
            instance_owners=[args["email"]],
            enable_deletion_protection=args["protect"],
            gce_setup={
                "machine_type": args["machine"],
                "disable_public_ip": True,
                "enable_ip_forwarding": False,
                "network_interfaces": [
                    {"network": args["network"], "subnet": args["subnetwork"], "nic_type": "GVNIC"}
                ],
                "service_accounts": [{"email": args["account"]}],
                "shielded_instance_config": {
                    "enable_secure_boot": True,
                    "enable_vtpm": True,
                    "enable_integrity_monitoring": True,
                },
                "boot_disk": {
                    "disk_size_gb": str(NOTEBOOK_BOOT_GIB),
                    "disk_type": "PD_STANDARD",
                    "disk_encryption": "CMEK",
                    "kms_key": args["key_id"],
                },
                "data_disks": {
                    "disk_size_gb": str(args["disk_gib"]),
                    "disk_type": "PD_STANDARD",
                    "disk_encryption": "CMEK",
                    "kms_key": args["key_id"],
                },
                "metadata": metadata(args["idle_minutes"]),
            },
            labels=dict(args["labels"]),
            # People switch it on and off, and the service itself does.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["desiredState"])),
        )
        gcp.workbench.InstanceIamMember(
            f"{name}-owner",
            location=args["zone"],
            name=instance.name,
            role=args["role"],
            member=f"user:{args['email']}",
            opts=self.child(),
        )
        self.name = instance.name
        self.register_outputs({"name": self.name})


def metadata(idle_minutes: int) -> dict[str, str]:
    """What makes an instance go off, and what its owner may not do.

    Source: Vertex AI Workbench documentation, "Manage metadata" and "Idle shutdown".
    """
    return {
        "idle-timeout-seconds": str(idle_minutes * 60),
        # Without it the instance never finds itself idle.
        "enable-guest-attributes": "true",
        "notebook-disable-root": "true",
        "notebook-disable-downloads": "true",
        "notebook-disable-nbconvert": "true",
        "notebook-disable-terminal": "false",
        "notebook-upgrade-schedule": "0 3 * * SUN",
        "install-unattended-upgrades": "true",
        "serial-port-enable": "false",
    }
