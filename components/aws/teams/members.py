"""Access entries of the members of all teams in their cluster."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from components.aws.cluster.access import access_entry
from components.base import Component, Options


class AwsMembersArgs(TypedDict):
    """Members and their groups."""

    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    groups: Mapping[str, str]
    """Kubernetes group by the ARN of an IAM role or user. EKS takes one access entry per ARN and cluster."""


class AwsMembers(Component):
    """One access entry per person, without an access policy: role bindings grant a group's permissions.

    All teams are in one component: a member who changes teams keeps the entry, which then names another
    group. Entries in two components would conflict, because a new one is created before the old one is
    deleted.
    """

    def __init__(self, name: str, args: AwsMembersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        for principal, group in args["groups"].items():
            access_entry(self, name, args["cluster_name"], principal, [group])
        self.register_declared()
