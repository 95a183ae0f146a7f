"""Checkpoint settings of a team's runs, and the permission to report the last checkpoint."""

from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.access import account, bound_role, may
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL
from smoke_training import checkpoint_policy

_ROLE = "says-last-checkpoint"


class TeamCheckpointsArgs(TypedDict):
    """Arguments of `TeamCheckpoints`."""

    namespace: pulumi.Input[str]
    """The team's namespace."""
    uri: pulumi.Input[str]
    """URI below which its runs write in the object store."""
    interval_s: int
    """Seconds between two checkpoints of a run."""
    keep_last: int
    """Number of latest checkpoints to keep."""
    keep_every_hours: int | None
    """Also keep the first one of every so many hours; None: no others."""


class TeamCheckpoints(Component):
    """A ConfigMap with the variables of the policy, and a role that lets pods write their own annotation.

    The role alone would let any pod of the team change any other; the policy `trainstack-own-pod` of the API
    server restricts each to its own annotation. So this comes after the policies.
    """

    def __init__(self, name: str, args: TeamCheckpointsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        data: dict[str, pulumi.Input[str]] = {
            checkpoint_policy.URI: args["uri"],
            checkpoint_policy.INTERVAL_S: str(args["interval_s"]),
            checkpoint_policy.KEEP_LAST: str(args["keep_last"]),
        }
        if args["keep_every_hours"] is not None:
            data[checkpoint_policy.KEEP_EVERY_HOURS] = str(args["keep_every_hours"])
        core.v1.ConfigMap(
            f"{name}-policy",
            metadata=meta.v1.ObjectMetaArgs(
                name=checkpoint_policy.CONFIG, namespace=args["namespace"], labels={GIVEN_LABEL: GIVEN}
            ),
            data=data,
            opts=self.child(),
        )
        # The account of pods without a service account: a job needs no setting for its permissions.
        pods = account("default", args["namespace"])
        rules = [may("", "pods", "patch")]
        bound_role(name, _ROLE, rules, pods, self.child, namespace=args["namespace"])
        self.register_declared()
