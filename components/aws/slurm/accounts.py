"""Accounts, QOS and limits of teams, which the login node loads into the accounting data base."""

import json
from typing import Final, TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component, Options
from infra.catalog.aws.pcs import GROUP_TAG
from infra.slurm import metadata
from infra.slurm.loading import FOLDER, loading_lines

_PATIENCE_S: Final = 1800
"""Seconds in which the login node must have started and loaded the accounts."""


class AwsSlurmAccountsArgs(TypedDict):
    """Login node and scripts."""

    login_group_id: pulumi.Input[str]
    """Id of the compute node group of the login node."""
    accounts: str
    """accounts.sh of `trainstack slurm render`, which may run again."""
    validation: str
    """The script that adds the account of validations; `$user` is their user."""
    add_user: str
    """add-user.sh: a member of a team, by user name and team."""
    tags: pulumi.Input[dict[str, str]]
    """Tags of the document."""


class AwsSlurmAccounts(Component):
    """A document of Systems Manager and its association with the login node.

    The association runs when the login node registers, when the script changes, and on a login node that
    replaces another one. Creation waits until it succeeded, so queues that name QOS come after it.
    """

    association_id: pulumi.Output[str]
    """Id of the association; known once the accounts are loaded."""

    def __init__(self, name: str, args: AwsSlurmAccountsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        document = aws.ssm.Document(
            f"{name}-document",
            document_type="Command",
            document_format="JSON",
            target_type="/AWS::EC2::Instance",
            content=json.dumps(content(args["accounts"], args["validation"], args["add_user"])),
            tags=args["tags"],
            opts=self.child(),
        )
        loaded = aws.ssm.Association(
            f"{name}-loaded",
            name=document.name,
            # Another script is another version, which runs at once.
            document_version=document.latest_version,
            targets=[aws.ssm.AssociationTargetArgs(key=f"tag:{GROUP_TAG}", values=[args["login_group_id"]])],
            wait_for_success_timeout_seconds=_PATIENCE_S,
            opts=self.child(),
        )
        self.association_id = loaded.association_id
        self.register_declared()


def content(accounts: str, validation: str, add_user: str) -> dict[str, object]:
    """The document: installs add-user.sh and runs accounts.sh as root; it fails where members reach keys."""
    first, *rest = loading_lines(accounts=accounts, validation=validation, add_user=add_user)
    lines = [first, f"{metadata.check(FOLDER)} >&2 || exit 1", *rest]
    return {
        "schemaVersion": "2.2",
        "description": "Accounts, QOS, quotas and budgets of the stack's teams.",
        "mainSteps": [{"action": "aws:runShellScript", "name": "accounts", "inputs": {"runCommand": lines}}],
    }
