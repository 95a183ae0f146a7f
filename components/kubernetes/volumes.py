"""A file system that exists outside the cluster, as a volume that many pods share."""

from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component
from components.ordering import after
from infra.errors import Problem, UserError

LUSTRE_DRIVER = "fsx.csi.aws.com"
EFS_DRIVER = "efs.csi.aws.com"


class LustreVolumeArgs(TypedDict):
    """An FSx for Lustre file system."""

    file_system_id: pulumi.Input[str]
    """Its id, `fs-...`."""
    dns_name: pulumi.Input[str]
    """Its DNS name."""
    mount_name: pulumi.Input[str]
    """Its mount name, which AWS chooses."""


class EfsVolumeArgs(TypedDict):
    """An EFS file system."""

    file_system_id: pulumi.Input[str]
    """Its id, `fs-...`."""
    access_point_id: NotRequired[pulumi.Input[str]]
    """Access point that fixes user and folder, `fsap-...`."""


class SharedVolumeArgs(TypedDict):
    """Arguments of `SharedVolume`: exactly one of `lustre` and `efs`."""

    namespace: pulumi.Input[str]
    """Namespace of the claim; a volume belongs to one claim, so one `SharedVolume` serves one namespace."""
    claim: str
    """Name of the claim in that namespace."""
    capacity_gib: int
    """Size shown to users, GiB; neither file system enforces it here."""
    lustre: NotRequired[LustreVolumeArgs]
    """The FSx for Lustre file system behind the volume."""
    efs: NotRequired[EfsVolumeArgs]
    """The EFS file system behind the volume."""


class SharedVolume(Component):
    """A static volume and its claim; the data stay when both are deleted.

    Raises UserError unless exactly one file system is given.
    """

    claim_name: pulumi.Output[str]
    """The claim, for pods of the namespace; whoever uses it comes after the volume is bound."""

    def __init__(self, name: str, args: SharedVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        source, mount_options = _source(args)
        size = f"{args['capacity_gib']}Gi"
        # Volumes are cluster-wide, so the name says whose claim it is for.
        volume_name = pulumi.Output.concat(args["namespace"], "-", args["claim"])
        # None of this can be changed in place.
        fixed = self.child(pulumi.ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True))
        volume = core.v1.PersistentVolume(
            f"{name}-volume",
            metadata=meta.v1.ObjectMetaArgs(name=volume_name),
            spec=core.v1.PersistentVolumeSpecArgs(
                access_modes=["ReadWriteMany"],
                capacity={"storage": size},
                claim_ref=core.v1.ObjectReferenceArgs(namespace=args["namespace"], name=args["claim"]),
                csi=source,
                mount_options=mount_options,
                persistent_volume_reclaim_policy="Retain",
                storage_class_name="",
                volume_mode="Filesystem",
            ),
            opts=fixed,
        )
        claim = core.v1.PersistentVolumeClaim(
            f"{name}-claim",
            metadata=meta.v1.ObjectMetaArgs(name=args["claim"], namespace=args["namespace"]),
            spec=core.v1.PersistentVolumeClaimSpecArgs(
                access_modes=["ReadWriteMany"],
                resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": size}),
                # Empty, not absent: absent means the default class, which would make a new volume.
                storage_class_name="",
                volume_name=volume_name,
            ),
            opts=pulumi.ResourceOptions.merge(fixed, pulumi.ResourceOptions(depends_on=[volume])),
        )
        self.claim_name = after(pulumi.Output.from_input(args["claim"]), [claim])
        self.register_outputs({"claim_name": self.claim_name})


def _source(args: SharedVolumeArgs) -> tuple[core.v1.CSIPersistentVolumeSourceArgs, list[str]]:
    """The driver's source and the mount options."""
    if ("lustre" in args) == ("efs" in args):
        rule = "a volume lies on exactly one file system"
        raise UserError([Problem("lustre, efs", None, rule, "Give one of the two.")])
    if "lustre" in args:
        lustre = args["lustre"]
        source = core.v1.CSIPersistentVolumeSourceArgs(
            driver=LUSTRE_DRIVER,
            volume_handle=lustre["file_system_id"],
            volume_attributes={"dnsname": lustre["dns_name"], "mountname": lustre["mount_name"]},
        )
        # Cluster-wide file locks, which data loaders and caches of several nodes rely on.
        return source, ["flock"]
    efs = args["efs"]
    handle: pulumi.Input[str] = efs["file_system_id"]
    if "access_point_id" in efs:
        handle = pulumi.Output.concat(handle, "::", efs["access_point_id"])
    return core.v1.CSIPersistentVolumeSourceArgs(driver=EFS_DRIVER, volume_handle=handle), ["tls"]
