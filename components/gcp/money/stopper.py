"""Budgets with actions: of the stack, of teams and of people, and the function that they call."""

import json
from collections.abc import Sequence
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from agents.gcp.budget_stop.function import AUDIT, EVENT, SETTINGS
from components.base import Component, Options
from components.gcp import iam
from components.gcp.alerts.policies import PolicyArgs, channels_of, mail_policy
from components.gcp.functions.function import GcpFunction
from components.gcp.jobs.roles import role_id
from components.gcp.money.budget import CurrencyArgs
from components.gcp.money.scopes import ScopeArgs, scoped_budget
from infra.catalog.gcp.deploying import PUBLISHER

# Cancelling takes a second each.
_TIMEOUT_S: Final = 300
KEPT_S: Final = 24 * 3600
"""Retention of the topic's messages: the next one has newer figures."""

STOPS: Final = (
    "aiplatform.customJobs.cancel",
    "aiplatform.customJobs.list",
    "aiplatform.endpoints.list",
    "aiplatform.endpoints.undeploy",
    "notebooks.instances.list",
    "notebooks.instances.stop",
)
"""On the project. Source: Vertex AI documentation, "IAM permissions"; iann0036/iam-dataset
gcp/roles/notebooks.*.json, read 2026-11-26."""


class GcpBudgetStopArgs(TypedDict):
    """The budgets, and the settings of the function."""

    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project: the Budget API returns this."""
    billing_account: str
    """The account that pays for the project."""
    currency: NotRequired[CurrencyArgs | None]
    """The account's, where it is not US dollars."""
    region: str
    """Region of jobs and function."""
    stack: str
    """Name of the stack, as its label has it."""
    scopes: Sequence[ScopeArgs]
    """Budgets, that of the stack first."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket: records of stopped workloads are below `audit/`, the source below `functions/`."""
    emails: Sequence[str]
    """Addresses for reports of stopped workloads, one to sixteen."""


class GcpBudgetStop(Component):
    """Budgets of Cloud Billing with one topic, and a function behind it that stops workloads.

    Disabling billing would stop everything, and its resources may be deleted for good; so single workloads
    are stopped instead (Cloud Billing documentation, "Control your costs"). For a budget with `warn` the
    function reports and records what it would have stopped. Its figures are those of the bill, some hours to
    a day old: the longest run of a job, quotas and Spot prices bound what a day can cost.

    Workloads with the label `trainstack-budget-exempt` and a reason are not stopped. Labels are no
    permissions: any starter of a job may set it, so every exemption is recorded and mailed like a stop.
    *Untested in a real project.*
    """

    budget_names: dict[str, pulumi.Output[str]]
    """Budgets by `<scope>-<value>`."""
    topic: pulumi.Output[str]
    """`projects/<project>/topics/<topic>`"""

    def __init__(self, name: str, args: GcpBudgetStopArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        topic = gcp.pubsub.Topic(
            f"{name}-topic",
            message_storage_policy={"allowed_persistence_regions": [args["region"]]},
            message_retention_duration=f"{KEPT_S}s",
            opts=self.child(),
        )
        budgets = [
            scoped_budget(
                self,
                name,
                one,
                stack=args["stack"],
                billing_account=args["billing_account"],
                project_number=args["project_number"],
                topic=topic.id,
                currency=args.get("currency"),
            )
            for one in args["scopes"]
        ]
        # The API granted the permission when it created the budgets; it stays when the topic changes.
        gcp.pubsub.TopicIAMMember(
            f"{name}-publisher",
            topic=topic.id,
            role="roles/pubsub.publisher",
            member=PUBLISHER,
            opts=self.child(pulumi.ResourceOptions(depends_on=budgets)),
        )
        function = self._function(name, args, topic, budgets)
        self._rights(name, args, function)
        self._mail(name, args, function)
        keys = [f"{one['scope']}-{one['value']}" for one in args["scopes"]]
        self.budget_names = {
            key: budget.display_name.apply(str) for key, budget in zip(keys, budgets, strict=True)
        }
        self.topic = topic.id
        self.register_declared()

    def _function(
        self,
        name: str,
        args: GcpBudgetStopArgs,
        topic: gcp.pubsub.Topic,
        budgets: Sequence[gcp.billing.Budget],
    ) -> GcpFunction:
        rows = [
            {
                "name": budget.display_name,
                "scope": one["scope"],
                "value": one["value"],
                "over_budget": one["over_budget"],
            }
            for budget, one in zip(budgets, args["scopes"], strict=True)
        ]
        place: dict[str, Any] = {
            "stack": args["stack"],
            "project": args["project"],
            "region": args["region"],
        }
        if currency := args.get("currency"):
            place["currency"] = currency
        settings = pulumi.Output.all(
            bucket=args["artifact_bucket"],
            budgets=pulumi.Output.all(*(pulumi.Output.from_input(row) for row in rows)),
        ).apply(lambda known: json.dumps({**place, **known}, sort_keys=True))
        return GcpFunction(
            f"{name}-stop",
            {
                "project": args["project"],
                "project_number": args["project_number"],
                "region": args["region"],
                "packages": ["agents.gcp.budget_stop", "agents.budget_stop"],
                "environment": {SETTINGS: settings},
                "topic": topic.id,
                "source_bucket": args["artifact_bucket"],
                "timeout_s": _TIMEOUT_S,
            },
            self.child(),
        )

    def _rights(self, name: str, args: GcpBudgetStopArgs, function: GcpFunction) -> None:
        """Read and stop in the project, and add records that it can neither read nor replace."""
        role = gcp.projects.IAMCustomRole(
            f"{name}-role",
            role_id=role_id(args["stack"], "budget-stop"),
            title=f"Stop what runs above a budget ({args['stack']})",
            permissions=list(STOPS),
            opts=self.child(),
        )
        iam.on_project(self, f"{name}-rights", args["project"], role.name, function.member)
        folder = gcp.storage.ManagedFolder(
            f"{name}-{AUDIT}",
            bucket=args["artifact_bucket"],
            name=f"{AUDIT}/",
            force_destroy=True,
            opts=self.child(),
        )
        iam.on_folder(
            self,
            f"{name}-{AUDIT}-adds",
            folder.bucket,
            folder.name,
            "roles/storage.objectCreator",
            function.member,
        )

    def _mail(self, name: str, args: GcpBudgetStopArgs, function: GcpFunction) -> None:
        people = channels_of(self, name, args["emails"], "emails")
        log_filter = function.service.apply(lambda service: lines_of(args["project"], service))
        asked: PolicyArgs = {
            "title": f"{name}: a budget is used up",
            "condition": {
                "display_name": "the function that stops jobs reported an action",
                "condition_matched_log": {
                    "filter": log_filter,
                    "label_extractors": {
                        "subject": "EXTRACT(jsonPayload.subject)",
                        "text": "EXTRACT(jsonPayload.text)",
                    },
                },
            },
            "documentation": DOCUMENTATION,
            "by_line": True,
        }
        mail_policy(self, name, asked, people)


DOCUMENTATION: Final = """\
${log.extracted_label.text}

Stopped workloads, and exempt ones, are recorded in the bucket of artifacts, below `audit/`.
"""


def lines_of(project: str, service: str) -> str:
    """A filter of Cloud Logging for the function's reports of stopped workloads."""
    return " AND ".join(
        (
            'resource.type="cloud_run_revision"',
            f"resource.labels.project_id={json.dumps(project)}",
            f"resource.labels.service_name={json.dumps(service)}",
            f"jsonPayload.event={json.dumps(EVENT)}",
        )
    )
