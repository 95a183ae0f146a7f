"""Scheduled copies between Managed Lustre and buckets.

The service's automatic import (`Mirror` of google-cloud-lustre 0.4.3, `gcloud alpha lustre`) is in alpha
(read 2026-11-28), and the provider has no resource for it.
"""

import base64
import json
from functools import partial
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.agents import LUSTRE, agent
from components.gcp.propagation import settled
from infra.naming import sanitize

CHECKPOINTS, DATASETS = "checkpoints", "datasets"
"""Folders of the file system that have a bucket."""
EXPORTS = "*/30 * * * *"
"""Schedule of copies of checkpoints to their bucket, in UTC: at most half an hour of a run's writes is lost
with the file system. A copy takes only new files."""
IMPORTS = "15 * * * *"
"""Schedule of copies of datasets from their bucket, in UTC; between two exports, as an instance runs one
copy at a time."""
_API = "https://lustre.googleapis.com/v1/"


class GcpLustreCopiesArgs(TypedDict):
    """The file system, and the buckets."""

    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    region: str
    """Region of the file system and of Cloud Scheduler."""
    instance: pulumi.Input[str]
    """`projects/<project>/locations/<zone>/instances/<name>`."""
    checkpoint_bucket: pulumi.Input[str]
    """Copy of `/checkpoints`."""
    dataset_bucket: pulumi.Input[str]
    """Source of `/datasets`."""


class GcpLustreCopies(Component):
    """Cloud Scheduler requests exports of checkpoints and imports of datasets.

    FSx for Lustre does both automatically, at once. Managed Lustre copies only on request (`exportData`,
    `importData`), and takes new and changed files. So a checkpoint is durable after the next export, up to
    half an hour and the time of the copy later; a job that needs certainty writes to the bucket itself.
    Deletions are not copied.

    A call that fails, as during another copy, is in the log of Cloud Scheduler, and the next one
    catches up. The result of a copy is in the log of Managed Lustre. *Untested in a real project.*
    """

    def __init__(self, name: str, args: GcpLustreCopiesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = iam.service_account(self, f"{name}-caller", name, "Asks Managed Lustre to copy")
        rights = [*self._service(name, args), self._caller(name, args["project"], account)]
        ready = pulumi.ResourceOptions(depends_on=rights)
        for what, schedule, folder, bucket in (
            ("export", EXPORTS, CHECKPOINTS, args["checkpoint_bucket"]),
            ("import", IMPORTS, DATASETS, args["dataset_bucket"]),
        ):
            body = pulumi.Output.from_input(bucket).apply(partial(request, folder))
            gcp.cloudscheduler.Job(
                f"{name}-{what}",
                region=args["region"],
                description=f"Asks Managed Lustre for an {what} of {folder}",
                schedule=schedule,
                time_zone="Etc/UTC",
                http_target={
                    "http_method": "POST",
                    "uri": pulumi.Output.concat(_API, args["instance"], f":{what}Data"),
                    "headers": {"Content-Type": "application/json"},
                    "body": body,
                    "oauth_token": {"service_account_email": account.email},
                },
                opts=self.child(ready),
            )
        self.register_declared()

    def _service(self, name: str, args: GcpLustreCopiesArgs) -> list[pulumi.Resource]:
        """Permissions of Managed Lustre's own agent: write checkpoints, and read datasets."""
        own = agent(self, f"{name}-agent", LUSTRE, project=args["project"], number=args["project_number"])
        return [
            gcp.storage.BucketIAMMember(
                f"{name}-{folder}", bucket=bucket, role=role, member=own, opts=settled(self.child(), own)
            )
            for folder, bucket, role in (
                (CHECKPOINTS, args["checkpoint_bucket"], "roles/storage.objectUser"),
                (DATASETS, args["dataset_bucket"], "roles/storage.objectViewer"),
            )
        ]

    def _caller(self, name: str, project: str, account: gcp.serviceaccount.Account) -> pulumi.Resource:
        """The permission to request copies, in a role of its own: the service's roles may delete, too."""
        role = gcp.projects.IAMCustomRole(
            f"{name}-role",
            role_id=sanitize(name).replace("-", "_"),
            title="Copies of Managed Lustre",
            description="Asks file systems to import from buckets, and to export to them",
            permissions=["lustre.instances.exportData", "lustre.instances.importData"],
            opts=self.child(),
        )
        return iam.on_project(self, f"{name}-rights", project, role.name, account.member)


def request(folder: str, bucket: str) -> str:
    """The body of an import or an export, in base64 for Cloud Scheduler.

    A path in a bucket ends with a slash (Managed Lustre API v1, `GcsPath`).
    """
    body = {"gcsPath": {"uri": f"gs://{bucket}/"}, "lustrePath": {"path": f"/{folder}/"}}
    return base64.b64encode(json.dumps(body).encode()).decode()
