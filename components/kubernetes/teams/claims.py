"""Volumes of a team, and their claims in its namespace, with a quota that allows no others."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.volumes import VolumeArgs, volume, volume_claim
from components.ordering import after


class TeamVolumesArgs(TypedDict):
    """Arguments of `TeamVolumes`."""

    namespace: str
    """The name of the team's namespace."""
    volumes: Mapping[str, VolumeArgs]
    """Volumes by name of the claim."""
    claims: str
    """The logical name of the team's `TeamClaims`, which formerly contained the volumes."""


class TeamVolumes(Component):
    """The volumes that a team's claims bind.

    The team's namespace must depend on them: a volume is not deleted while its claim exists (finalizer
    `kubernetes.io/pv-protection`), and the claim ends with the namespace.
    """

    def __init__(self, name: str, args: TeamVolumesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        for claim, each in args["volumes"].items():
            opts_of_volume = self.child(_formerly(args["claims"], claim, "volume"))
            volume(
                f"{name}-{claim}", {"namespace": args["namespace"], "claim": claim, **each}, opts_of_volume
            )
        self.register_declared()


class TeamClaimsArgs(TypedDict):
    """Arguments of `TeamClaims`."""

    namespace: pulumi.Input[str]
    """The team's namespace."""
    volumes: Mapping[str, VolumeArgs]
    """Volumes by name of the claim, as in `TeamVolumes`."""


class TeamClaims(Component):
    """A claim per volume, and a quota of exactly so many.

    A further claim would be an unplanned disk, or an attempt to bind another team's volume. The quota counts
    claims of every kind, those of generic ephemeral volumes and StatefulSets included.

    It needs the option `deleted_with`, the namespace: a claim stays while a pod mounts it (finalizer
    `kubernetes.io/pvc-protection`), and the pods of users end only with the namespace.
    """

    claims: pulumi.Output[list[str]]
    """Names of the claims; dependents come after they are bound."""

    def __init__(self, name: str, args: TeamClaimsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        quota = core.v1.ResourceQuota(
            f"{name}-quota",
            metadata=meta.v1.ObjectMetaArgs(name="claims", namespace=args["namespace"]),
            spec=core.v1.ResourceQuotaSpecArgs(hard={"persistentvolumeclaims": str(len(args["volumes"]))}),
            opts=self.child(),
        )
        # A further claim is rejected until the quota allows it.
        after_quota = self.child(pulumi.ResourceOptions(depends_on=[quota]))
        made = [
            volume_claim(
                f"{name}-{claim}",
                {"namespace": args["namespace"], "claim": claim, **each},
                pulumi.ResourceOptions.merge(after_quota, _formerly(name, claim, "claim")),
            )
            for claim, each in args["volumes"].items()
        ]
        self.claims = after(pulumi.Output.from_input([*args["volumes"]]), made)
        self.register_declared()


def _formerly(claims: str, claim: str, part: str) -> pulumi.ResourceOptions:
    """The option that keeps a deployed object which was `part` of a `SharedVolume` in a `TeamClaims`.

    Created again under another URN, it would be refused: an object of its name exists.
    """
    place = f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}"
    kinds = "$".join(f"trainstack:index:{kind}" for kind in ("TeamClaims", "SharedVolume"))
    shared = f"{claims}-{claim}"
    before = pulumi.Alias(name=f"{shared}-{part}", parent=f"{place}::{kinds}::{shared}")
    return pulumi.ResourceOptions(aliases=[before])
