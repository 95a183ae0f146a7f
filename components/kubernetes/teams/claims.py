"""Volume claims of a team's pods, with a quota that allows no others."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.volumes import SharedVolume, VolumeArgs


class TeamClaimsArgs(TypedDict):
    """Arguments of `TeamClaims`."""

    namespace: pulumi.Input[str]
    """The team's namespace."""
    volumes: Mapping[str, VolumeArgs]
    """Volumes by name of the claim."""


class TeamClaims(Component):
    """A claim per volume, and a quota of exactly so many.

    A further claim would be an unplanned disk, or an attempt to bind another team's volume. The quota counts
    claims of every kind, those of generic ephemeral volumes and StatefulSets included.
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
        after_quota = pulumi.ResourceOptions(depends_on=[quota])
        made = [
            SharedVolume(
                f"{name}-{claim}",
                {"namespace": args["namespace"], "claim": claim, **volume},
                self.child(after_quota),
            )
            for claim, volume in args["volumes"].items()
        ]
        self.claims = pulumi.Output.all(*(each.claim_name for each in made))
        self.register_declared()
