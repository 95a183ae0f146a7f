"""Scheduled validation of a stack without a cluster: Cloud Scheduler requests the job."""

import base64
import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.alerts.policies import PolicyArgs, mail_policy
from components.gcp.jobs.roles import role_id
from components.ordering import after
from infra.catalog.gcp.schedules import for_scheduler

_API = "https://{}-aiplatform.googleapis.com/v1"
_ACTS = "roles/iam.serviceAccountUser"
STARTS = ("aiplatform.customJobs.create",)
"""The project permissions of the account that starts the job."""


class GcpJobScheduleArgs(TypedDict):
    """The validation to repeat, its schedule, and the channels for failed starts."""

    project: str
    """Id of the project."""
    region: str
    stack: str
    """Name of the stack."""
    schedule: str
    """A cron expression of five fields, UTC."""
    request: pulumi.Input[str]
    """The request of a validation that passed, as JSON (`components.jobs.gate.JobGate.scheduled`)."""
    account: pulumi.Input[str]
    """Address of the account of the job."""
    channels: pulumi.Input[Sequence[str]]
    """Notification channels."""


class GcpJobSchedule(Component):
    """Starts the validation at its times, as an account that may only start jobs as that of the job.

    The body of the request is always the same: the job itself uses a folder of its own
    (`runplan.Vertex.folder_each`). A start that fails is an error in the log of Cloud Scheduler, and a policy
    on the log mails it. It is not retried: the service may have created a job for a request whose response
    was lost.

    Cloud Scheduler's own agent may act as the account, with the role that it gets when its API is enabled.
    *Untested in a real project.*
    """

    name: pulumi.Output[str]
    """Name of the job of Cloud Scheduler; comes after the policy."""

    def __init__(self, name: str, args: GcpJobScheduleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = iam.service_account(
            self, f"{name}-starter", name, f"Starts the validation of {args['stack']}"
        )
        project, region = args["project"], args["region"]
        job = gcp.cloudscheduler.Job(
            f"{name}-job",
            region=region,
            description=f"Starts the validation of {args['stack']}",
            schedule=for_scheduler(args["schedule"]),
            time_zone="Etc/UTC",
            retry_config={"retry_count": 0},
            http_target={
                "http_method": "POST",
                "uri": f"{_API.format(region)}/projects/{project}/locations/{region}/customJobs",
                "headers": {"Content-Type": "application/json"},
                "body": pulumi.Output.from_input(args["request"]).apply(_encoded),
                "oauth_token": {"service_account_email": account.email},
            },
            opts=self.child(pulumi.ResourceOptions(depends_on=self._rights(name, args, account))),
        )
        self.name = after(job.name, [self._policy(name, args, job)])
        self.register_declared()

    def _rights(
        self, name: str, args: GcpJobScheduleArgs, account: gcp.serviceaccount.Account
    ) -> list[pulumi.Resource]:
        role = gcp.projects.IAMCustomRole(
            f"{name}-role",
            role_id=role_id(args["stack"], "starts"),
            title=f"Start the validation ({args['stack']})",
            permissions=[*STARTS],
            opts=self.child(),
        )
        runs_as = pulumi.Output.concat("projects/", args["project"], "/serviceAccounts/", args["account"])
        return [
            iam.on_project(self, f"{name}-starts", args["project"], role.name, account.member),
            iam.on_account(self, f"{name}-acts", runs_as, _ACTS, account.member),
        ]

    def _policy(
        self, name: str, args: GcpJobScheduleArgs, job: gcp.cloudscheduler.Job
    ) -> gcp.monitoring.AlertPolicy:
        refused = job.name.apply(lambda made: refused_starts(args["project"], args["region"], made))
        asked: PolicyArgs = {
            "title": f"{name}: a scheduled validation was not started",
            "condition": {
                "display_name": "Cloud Scheduler could not start it",
                "condition_matched_log": {
                    "filter": refused,
                    "label_extractors": {"status": "EXTRACT(jsonPayload.status)"},
                },
            },
            "documentation": DOCUMENTATION,
            "subject": f"{args['stack']}: scheduled validation not started, {_STATUS}",
            "by_line": True,
        }
        return mail_policy(self, name, asked, args["channels"])


_STATUS = "${log.extracted_label.status}"
DOCUMENTATION = f"""\
Vertex AI created no job: {_STATUS}. Nothing was validated, and there is no retry before the next time.

The log entry has the response in `jsonPayload.debugInfo`. With PERMISSION_DENIED, permissions of the account
that starts the job were removed: `trainstack refresh`, then `trainstack up`, grants them again. With
RESOURCE_EXHAUSTED, the quota of the machine type is too small: `trainstack preflight` shows the requirement.
"""


def refused_starts(project: str, region: str, job: str) -> str:
    """A filter of Cloud Logging: attempts of a job of Cloud Scheduler that failed.

    One entry is written when an attempt has ended (`AttemptFinished`), of the severity ERROR and with a
    `status` where it failed. Source: Cloud Logging documentation, "Monitored resource types"
    (cloud_scheduler_job); the fields as filters and tests of public repositories read them, 2026-11-26.
    """
    labels = {"project_id": project, "location": region, "job_id": job}
    of_labels = (f"resource.labels.{name}={json.dumps(value)}" for name, value in labels.items())
    return " AND ".join(('resource.type="cloud_scheduler_job"', *of_labels, "severity>=ERROR"))


def _encoded(text: str) -> str:
    """In base64, as Cloud Scheduler requires a body."""
    return base64.b64encode(text.encode()).decode()
