"""The people of all teams, as the API server of their cluster knows them."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from components.aws.cluster.access import access_entry
from components.base import Component


class AwsMembersArgs(TypedDict):
    """Who is in which group."""

    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    groups: Mapping[str, str]
    """Kubernetes group by the ARN of an IAM role or user. EKS takes one access entry per ARN and cluster."""


class AwsMembers(Component):
    """One access entry per person, without an access policy: what a group may do, its role bindings say.

    All teams in one component: whoever changes teams keeps their entry, which then names another group. Two
    entries of two teams would be in each other's way, because a new one is made before an old one goes.
    """

    def __init__(self, name: str, args: AwsMembersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        for principal, group in args["groups"].items():
            access_entry(self, name, args["cluster_name"], principal, [group])
        self.register_outputs({})
