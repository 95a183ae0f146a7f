"""Somebody who trains: an account for jobs and notebooks, and the rights of account and person."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.teams.team_data import READ, WRITE
from components.ordering import after
from infra.naming import sanitize

# At most 30 characters (IAM documentation, "Create service accounts").
_ACCOUNT = 30
_ADD = "roles/storage.objectCreator"
_ACTS = "roles/iam.serviceAccountUser"


class PersonFoldersArgs(TypedDict):
    """Managed folders, with their buckets."""

    dataset_bucket: pulumi.Input[str]
    """Name of the bucket of datasets."""
    shared: pulumi.Input[str]
    """What every team may read there."""
    datasets: pulumi.Input[str]
    """What the person's team may read there."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    checkpoints: pulumi.Input[str]
    """The team's folder there."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""
    code: pulumi.Input[str]
    """Folder of packs of code there."""
    runs: pulumi.Input[str]
    """Folder of what jobs leave there."""


class GcpPersonArgs(TypedDict):
    """Who, and which rights."""

    project: str
    """Id of the project."""
    stack: str
    """Name of the stack."""
    person: str
    """Name of the person."""
    email: str
    """Address with which she or he logs in to Google Cloud."""
    folders: PersonFoldersArgs
    """Where the person's data is."""
    jobs_role: pulumi.Input[str]
    """`GcpJobRoles.jobs`."""
    signs_role: pulumi.Input[str]
    """`GcpJobRoles.signs`."""


class GcpPerson(Component):
    """A service account as which one person's jobs and notebook run, and the same rights for the person.

    Both read the shared and the team's datasets, write the team's checkpoints and what jobs leave, and
    add packs of code: a pack is called by the digest of what it holds, so nobody has to replace one, and
    nobody can. Both may run jobs, as this account and as no other: `actAs` is given on the account itself, so
    neither reaches what another person's account does.

    The person may not ask for tokens of the account: what somebody does by hand is in the audit log under her
    own name. For the tracking server alone, tokens are signed in the account's name (`GcpJobRoles`).
    *Untested in a real project.*
    """

    email: pulumi.Output[str]
    """Address of the account; what runs as it comes after its rights."""
    member: pulumi.Output[str]
    """The account, as IAM calls it."""

    def __init__(self, name: str, args: GcpPersonArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        account = gcp.serviceaccount.Account(
            f"{name}-account",
            account_id=account_id(args["stack"], args["person"]),
            display_name=f"Jobs and notebook of {args['person']} ({args['stack']})",
            opts=self.child(),
        )
        rights: list[pulumi.Resource] = []
        members: dict[str, pulumi.Input[str]] = {"account": account.member, "user": f"user:{args['email']}"}
        for who, member in members.items():
            rights += self._on_folders(f"{name}-{who}", args["folders"], member)
            rights += self._as_account(f"{name}-{who}", args, account, member)
            rights.append(
                gcp.projects.IAMMember(
                    f"{name}-{who}-jobs",
                    project=args["project"],
                    role=args["jobs_role"],
                    member=member,
                    opts=self.child(),
                )
            )
        self.email = after(account.email, rights)
        self.member = after(account.member, rights)
        self.register_outputs({"email": self.email, "member": self.member})

    def _on_folders(
        self, name: str, folders: PersonFoldersArgs, member: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        wanted = (
            ("shared", folders["dataset_bucket"], folders["shared"], READ),
            ("datasets", folders["dataset_bucket"], folders["datasets"], READ),
            ("checkpoints", folders["checkpoint_bucket"], folders["checkpoints"], WRITE),
            ("runs", folders["artifact_bucket"], folders["runs"], WRITE),
            ("code", folders["artifact_bucket"], folders["code"], READ),
            ("code-adds", folders["artifact_bucket"], folders["code"], _ADD),
        )
        return [
            gcp.storage.ManagedFolderIamMember(
                f"{name}-{what}",
                bucket=bucket,
                managed_folder=folder,
                role=role,
                member=member,
                opts=self.child(),
            )
            for what, bucket, folder, role in wanted
        ]

    def _as_account(
        self,
        name: str,
        args: GcpPersonArgs,
        account: gcp.serviceaccount.Account,
        member: pulumi.Input[str],
    ) -> list[pulumi.Resource]:
        roles: dict[str, pulumi.Input[str]] = {"acts": _ACTS, "signs": args["signs_role"]}
        return [
            gcp.serviceaccount.IAMMember(
                f"{name}-{what}",
                service_account_id=account.name,
                role=role,
                member=member,
                opts=self.child(),
            )
            for what, role in roles.items()
        ]


def account_id(stack: str, person: str) -> str:
    """The part of the account's address before the `@`; in a project, two stacks may have the same person."""
    return sanitize(f"{stack}-job-{person}", max_length=_ACCOUNT)
