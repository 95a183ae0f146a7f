"""A notebook of one person, which stops when it is idle."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from infra.catalog.gcp.jobs import NOTEBOOK_BOOT_GIB, notebook_problems
from infra.errors import UserError
from infra.naming import sanitize

# An instance has a name of at most 63 characters, of which Pulumi uses eight to make it unique.
_NAME = 55


class GcpNotebookArgs(TypedDict):
    """Owner, location and size of the notebook."""

    zone: str
    """The zone, such as `us-central1-a`."""
    person: str
    """Name of the person."""
    email: str
    """Address of the person, the only one with access."""
    account: pulumi.Input[str]
    """Address of its service account."""
    network: pulumi.Input[str]
    """`projects/<project>/global/networks/<name>`."""
    subnetwork: pulumi.Input[str]
    """`projects/<project>/regions/<region>/subnetworks/<name>`, with a route to the internet."""
    key_id: pulumi.Input[str]
    """Key of Cloud KMS in the region, which Compute Engine may use."""
    machine: str
    """Machine type without GPUs, such as `e2-standard-2`."""
    disk_gib: int
    """Disk for the person's files, in GiB."""
    idle_minutes: int
    """Idle minutes after which it is stopped, 10 to 1440."""
    labels: Mapping[str, str]
    """Labels of person and team, for budgets and their actions."""
    role: pulumi.Input[str]
    """`GcpJobRoles.notebook`, granted to the person on it."""
    protect: bool
    """Refuse to delete it, with the files on its disk."""


class GcpNotebook(Component):
    """A Workbench instance: JupyterLab on a machine in the stack's network.

    A Workbench instance rather than a Colab Enterprise runtime: it runs as an account, so code that works in
    it works in a job; its terminal and downloads can be disabled, which organizations require; and it is part
    of this stack, so it is deleted with it. Runtimes of Colab belong to the user who started them, and hold
    the template and its network until they are found. The price is its disks, which are billed while it is
    stopped: they are standard persistent disks, which start it slower and cost less than half.

    Only its owner can open it, through Google's proxy; it has no public address. It is a Shielded VM with
    secure boot. The owner is not root and may install packages in the home; the image stays as it is, and is
    upgraded in the night to Sunday. Downloads to the browser and exports (`nbconvert`) are off: data
    leaves through a bucket with a log. The terminal is on, because git needs one.

    It stops after `idle_minutes` without use, which it detects only with guest attributes. Workbench's
    definition of use is not documented in full; a computing kernel counts.
    *Untested in a real project.*
    """

    name: pulumi.Output[str]
    """Name of the instance."""

    def __init__(self, name: str, args: GcpNotebookArgs, opts: Options = None) -> None:
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
            # Users start and stop it, and the service itself does.
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
        self.register_declared()


def metadata(idle_minutes: int) -> dict[str, str]:
    """Metadata that stops an idle instance, and restricts its owner.

    Source: Vertex AI Workbench documentation, "Manage metadata" and "Idle shutdown".
    """
    return {
        "idle-timeout-seconds": str(idle_minutes * 60),
        # Without it the instance never detects that it is idle.
        "enable-guest-attributes": "true",
        "notebook-disable-root": "true",
        "notebook-disable-downloads": "true",
        "notebook-disable-nbconvert": "true",
        "notebook-disable-terminal": "false",
        "notebook-upgrade-schedule": "0 3 * * SUN",
        "install-unattended-upgrades": "true",
        "serial-port-enable": "false",
    }
