"""Roles of people: what running jobs and using a notebook takes, and no more."""

from typing import Final, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.ordering import after
from infra.naming import sanitize

JOBS: Final = (
    "aiplatform.customJobs.cancel",
    "aiplatform.customJobs.create",
    "aiplatform.customJobs.get",
    "aiplatform.customJobs.list",
    # What a job says goes to Cloud Logging, and comes from there to who follows it.
    "logging.logEntries.create",
    "logging.logEntries.list",
    # Whoever asks an API with a login of her own names a project that pays for the request.
    "serviceusage.services.use",
)
"""On the project. `roles/aiplatform.user`, the least that Google offers, holds hundreds more: to deploy
models, to read and delete those of others, to delete jobs and with them the trace of what was run. Source:
Vertex AI documentation, "IAM permissions" (projects.locations.customJobs), read 2026-11-26."""

NOTEBOOK: Final = (
    "notebooks.instances.get",
    "notebooks.instances.getHealth",
    "notebooks.instances.start",
    "notebooks.instances.stop",
    "notebooks.instances.use",
)
"""On one instance: to open it, and to switch it on and off; not to change its owner, account or settings.
Source: iann0036/iam-dataset gcp/roles/notebooks.*.json, read 2026-11-26."""

SIGNS: Final = ("iam.serviceAccounts.signJwt",)
"""On a person's own account: Identity-Aware Proxy lets a program in with a token that its account signed.
Source: IAP documentation, "Programmatic authentication" (service account signed JWT), read 2026-11-26."""


class GcpJobRolesArgs(TypedDict):
    """Where the roles are."""

    stack: str
    """Name of the stack, of which those of the roles begin."""


class GcpJobRoles(Component):
    """Three custom roles of the project.

    The role for jobs is about every custom job of the project: jobs take no roles of their own, and no
    condition tells them apart (IAM documentation, "Resource types that accept conditions"). So people of one
    project see each other's jobs and can cancel them; what they cannot do is run as somebody else. Teams that
    must not see each other have projects of their own. *Untested in a real project.*
    """

    jobs: pulumi.Output[str]
    """`projects/<project>/roles/<role>`: to run jobs; given on the project."""
    notebook: pulumi.Output[str]
    """To use a notebook; given on the notebook."""
    signs: pulumi.Output[str]
    """To sign tokens of an account; given on the account."""

    def __init__(self, name: str, args: GcpJobRolesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        stack = args["stack"]
        self.jobs = self._role(name, stack, "jobs", "Run jobs", JOBS)
        self.notebook = self._role(name, stack, "notebook", "Use a notebook", NOTEBOOK)
        self.signs = self._role(name, stack, "signs", "Sign tokens of an account", SIGNS)
        self.register_outputs({"jobs": self.jobs, "notebook": self.notebook, "signs": self.signs})

    def _role(
        self, name: str, stack: str, what: str, title: str, permissions: tuple[str, ...]
    ) -> pulumi.Output[str]:
        role = gcp.projects.IAMCustomRole(
            f"{name}-{what}",
            role_id=role_id(stack, what),
            title=f"{title} ({stack})",
            permissions=list(permissions),
            opts=self.child(),
        )
        return after(role.name, [role])


def role_id(stack: str, what: str) -> str:
    """The id of a custom role: letters, digits and `_`, at most 64 characters (IAM documentation)."""
    return sanitize(f"{stack}-{what}").replace("-", "_")
