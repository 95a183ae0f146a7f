"""A person without a cluster: the account of jobs and notebooks, permissions of account and person."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.jobs.folders import CODE
from components.gcp.teams.team_data import READ, WRITE
from components.ordering import after
from infra.naming import sanitize

_ADD = "roles/storage.objectCreator"
_ACTS = "roles/iam.serviceAccountUser"


class PersonFoldersArgs(TypedDict):
    """Managed folders, with their buckets."""

    dataset_bucket: pulumi.Input[str]
    """Name of the bucket of datasets."""
    shared: pulumi.Input[str]
    """Readable by every team there."""
    datasets: pulumi.Input[str]
    """Readable by the person's team there."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    checkpoints: pulumi.Input[str]
    """The team's folder there."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts, with the person's folder of packs of code."""
    runs: pulumi.Input[str]
    """Folder of outputs of jobs there."""


class GcpPersonArgs(TypedDict):
    """The person, and the permissions."""

    project: str
    """Id of the project."""
    stack: str
    """Name of the stack."""
    person: str
    """Name of the person."""
    email: str
    """Address of the person's login to Google Cloud."""
    folders: PersonFoldersArgs
    """Folders of the person's data."""
    jobs_role: pulumi.Input[str]
    """`GcpJobRoles.jobs`."""
    signs_role: pulumi.Input[str]
    """`GcpJobRoles.signs`."""


class GcpPerson(Component):
    """A service account for one person's jobs and notebook, and the same permissions for the person.

    Both read the shared and the team's datasets, write the team's checkpoints and outputs of jobs, and add
    packs of code to a folder of their own: a pack is named by the digest of its content, so it never needs
    to be replaced, and cannot be. A job copies every object of its pack: others may not add any. Both may
    run jobs, as this account and as no other: `actAs` is granted on the account itself, so neither has
    access to another person's account.

    The person cannot request tokens of the account: manual actions are in the audit log under the person's
    own name. For the tracking server alone, tokens are signed in the account's name (`GcpJobRoles`).
    *Untested in a real project.*
    """

    email: pulumi.Output[str]
    """Address of the account; its jobs come after its permissions."""
    member: pulumi.Output[str]
    """The account, as an IAM member."""

    def __init__(self, name: str, args: GcpPersonArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = iam.service_account(
            self,
            f"{name}-account",
            account_id(args["stack"], args["person"]),
            f"Jobs and notebook of {args['person']} ({args['stack']})",
        )
        own = gcp.storage.ManagedFolder(
            f"{name}-code",
            bucket=args["folders"]["artifact_bucket"],
            name=f"{CODE}/{args['person']}/",
            force_destroy=True,  # of its roles: objects stay
            opts=self.child(),
        ).name
        rights: list[pulumi.Resource] = []
        members: dict[str, pulumi.Input[str]] = {"account": account.member, "user": f"user:{args['email']}"}
        for who, member in members.items():
            rights += self._on_folders(f"{name}-{who}", args["folders"], own, member)
            rights += self._as_account(f"{name}-{who}", args, account, member)
            rights.append(
                iam.on_project(self, f"{name}-{who}-jobs", args["project"], args["jobs_role"], member)
            )
        self.email = after(account.email, rights)
        self.member = after(account.member, rights)
        self.register_declared()

    def _on_folders(
        self, name: str, folders: PersonFoldersArgs, code: pulumi.Output[str], member: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        wanted = (
            ("shared", folders["dataset_bucket"], folders["shared"], READ),
            ("datasets", folders["dataset_bucket"], folders["datasets"], READ),
            ("checkpoints", folders["checkpoint_bucket"], folders["checkpoints"], WRITE),
            ("runs", folders["artifact_bucket"], folders["runs"], WRITE),
            ("code", folders["artifact_bucket"], code, READ),
            ("code-adds", folders["artifact_bucket"], code, _ADD),
        )
        return [
            iam.on_folder(self, f"{name}-{what}", bucket, folder, role, member)
            for what, bucket, folder, role in wanted
        ]

    def _as_account(
        self, name: str, args: GcpPersonArgs, account: gcp.serviceaccount.Account, member: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        roles: dict[str, pulumi.Input[str]] = {"acts": _ACTS, "signs": args["signs_role"]}
        return [
            iam.on_account(self, f"{name}-{what}", account.name, role, member) for what, role in roles.items()
        ]


def account_id(stack: str, person: str) -> str:
    """The part of the account's address before the `@`; in a project, two stacks may have the same person."""
    return sanitize(f"{stack}-job-{person}", max_length=iam.LONGEST_ID)
