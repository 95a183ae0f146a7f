"""A file system outside the cluster, as a volume that many pods share."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL
from components.ordering import after

# What a claim requests: every volume has so much, also one that was created when its file system was smaller.
_LEAST = "1Gi"


class VolumeSourceArgs(TypedDict):
    """A file system that a driver of the Container Storage Interface (CSI) mounts."""

    driver: str
    """Name of the driver."""
    handle: pulumi.Input[str]
    """The driver's handle of the file system."""
    attributes: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Further attributes for the driver's mount."""
    mount_options: Sequence[str]
    """Options of the mount."""


class VolumeArgs(TypedDict):
    """A file system as one volume."""

    capacity_gib: int
    """Size that a new volume shows, GiB; none is enforced, and the file system may grow later."""
    source: VolumeSourceArgs
    """The file system behind the volume."""


class SharedVolumeArgs(VolumeArgs):
    """Arguments of `SharedVolume`."""

    namespace: pulumi.Input[str]
    """Namespace of the claim; a volume belongs to one claim, so one `SharedVolume` serves one namespace."""
    claim: str
    """Name of the claim in that namespace."""


class SharedVolume(Component):
    """A static volume and its claim; the data stay when both are deleted."""

    claim_name: pulumi.Output[str]
    """The claim, for pods of the namespace; dependents come after the volume is bound."""

    def __init__(self, name: str, args: SharedVolumeArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        made = volume(f"{name}-volume", args, self.child())
        claim = volume_claim(f"{name}-claim", args, self.child(pulumi.ResourceOptions(depends_on=[made])))
        self.claim_name = after(pulumi.Output.from_input(args["claim"]), [claim])
        self.register_declared()


def volume(name: str, args: SharedVolumeArgs, opts: pulumi.ResourceOptions) -> core.v1.PersistentVolume:
    """The static volume of a claim."""
    source = args["source"]
    return core.v1.PersistentVolume(
        name,
        metadata=meta.v1.ObjectMetaArgs(name=_volume_name(args)),
        spec=core.v1.PersistentVolumeSpecArgs(
            access_modes=["ReadWriteMany"],
            capacity={"storage": f"{args['capacity_gib']}Gi"},
            claim_ref=core.v1.ObjectReferenceArgs(namespace=args["namespace"], name=args["claim"]),
            csi=core.v1.CSIPersistentVolumeSourceArgs(
                driver=source["driver"],
                volume_handle=source["handle"],
                volume_attributes=source.get("attributes"),
            ),
            mount_options=source["mount_options"],
            persistent_volume_reclaim_policy="Retain",
            storage_class_name="",
            volume_mode="Filesystem",
        ),
        opts=_fixed(opts, "spec.capacity"),
    )


def volume_claim(
    name: str, args: SharedVolumeArgs, opts: pulumi.ResourceOptions
) -> core.v1.PersistentVolumeClaim:
    """The claim of a static volume, which must exist."""
    return core.v1.PersistentVolumeClaim(
        name,
        metadata=meta.v1.ObjectMetaArgs(
            name=args["claim"], namespace=args["namespace"], labels={GIVEN_LABEL: GIVEN}
        ),
        spec=core.v1.PersistentVolumeClaimSpecArgs(
            access_modes=["ReadWriteMany"],
            resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": _LEAST}),
            # Empty, not absent: absent means the default class, which would make a new volume.
            storage_class_name="",
            volume_name=_volume_name(args),
        ),
        opts=_fixed(opts, "spec.resources"),
    )


def _fixed(opts: pulumi.ResourceOptions, size: str) -> pulumi.ResourceOptions:
    """Options of objects whose `spec` cannot be changed in place.

    Its `size` stays as it was created: nothing enforces it, and a volume is not deleted while it is bound, so
    a file system that grows must not replace its volumes.
    """
    fixed = pulumi.ResourceOptions(
        replace_on_changes=["spec"], delete_before_replace=True, ignore_changes=[size]
    )
    return pulumi.ResourceOptions.merge(opts, fixed)


def _volume_name(args: SharedVolumeArgs) -> pulumi.Output[str]:
    # Volumes are cluster-wide, so the name includes the claim's namespace.
    return pulumi.Output.concat(args["namespace"], "-", args["claim"])
