"""The account of the job that validates a stack."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.jobs.tracking import VISITS
from components.gcp.teams.team_data import READ, WRITE
from components.ordering import after


class GcpValidatorArgs(TypedDict):
    """Data that the validation reads and writes."""

    project: str
    """Id of the project."""
    region: str
    """Region of the tracking server."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    results: pulumi.Input[str]
    """Managed folder of results there."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""
    code: pulumi.Input[str]
    """Managed folder of packs of code there."""
    runs: pulumi.Input[str]
    """Managed folder of outputs of jobs there."""
    tracking: pulumi.Input[str]
    """Name of the Cloud Run service of MLflow."""
    signs_role: pulumi.Input[str]
    """`GcpJobRoles.signs`."""


class GcpValidator(Component):
    """An account for the validation alone: without access to data of people, and not usable by them.

    It starts no jobs: the deployer starts this one. *Untested in a real project.*
    """

    email: pulumi.Output[str]
    """Address of the account; its jobs come after its permissions."""
    member: pulumi.Output[str]
    """The account, as an IAM member."""

    def __init__(self, name: str, args: GcpValidatorArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = iam.service_account(self, f"{name}-account", f"{name}-validation", f"Validation of {name}")
        folders = (
            ("results", args["checkpoint_bucket"], args["results"], WRITE),
            ("runs", args["artifact_bucket"], args["runs"], WRITE),
            ("code", args["artifact_bucket"], args["code"], READ),
        )
        rights: list[pulumi.Resource] = [
            iam.on_folder(self, f"{name}-{what}", bucket, folder, role, account.member)
            for what, bucket, folder, role in folders
        ]
        rights += [
            iam.on_account(self, f"{name}-signs", account.name, args["signs_role"], account.member),
            gcp.iap.WebCloudRunServiceIamMember(
                f"{name}-visits",
                location=args["region"],
                cloud_run_service_name=args["tracking"],
                role=VISITS,
                member=account.member,
                opts=self.child(),
            ),
        ]
        self.email, self.member = after(account.email, rights), account.member
        self.register_declared()
