"""Custom roles of people: permissions for jobs and for a notebook, and no more."""

from typing import Final, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.ordering import after
from infra.naming import sanitize

JOBS: Final = (
    "aiplatform.customJobs.cancel",
    "aiplatform.customJobs.create",
    "aiplatform.customJobs.get",
    "aiplatform.customJobs.list",
    # Jobs log to Cloud Logging, and followers of a job read it there.
    "logging.logEntries.create",
    "logging.logEntries.list",
    # A caller of an API with a login of a person names a project that pays for the request.
    "serviceusage.services.use",
)
"""On the project. `roles/aiplatform.user`, the smallest of Google, has hundreds more: to deploy
models, to read and delete those of others, to delete jobs and with them the trace of runs. Source:
Vertex AI documentation, "IAM permissions" (projects.locations.customJobs), read 2026-11-26."""

NOTEBOOK: Final = (
    "notebooks.instances.get",
    "notebooks.instances.getHealth",
    "notebooks.instances.start",
    "notebooks.instances.stop",
    "notebooks.instances.use",
)
"""On one instance: to open, start and stop it; not to change its owner, account or settings.
Source: iann0036/iam-dataset gcp/roles/notebooks.*.json, read 2026-11-26."""

SIGNS: Final = ("iam.serviceAccounts.signJwt",)
"""On a person's own account: Identity-Aware Proxy admits a program with a token that its account signed.
Source: IAP documentation, "Programmatic authentication" (service account signed JWT), read 2026-11-26."""


class GcpJobRolesArgs(TypedDict):
    """The stack of the roles."""

    stack: str
    """Name of the stack, prefix of the roles' names."""


class GcpJobRoles(Component):
    """Three custom roles of the project.

    The role for jobs covers every custom job of the project: jobs have no roles of their own, and no
    condition distinguishes them (IAM documentation, "Resource types that accept conditions"). So people of
    one project see each other's jobs and can cancel them; they cannot run as another account. Teams that must
    not see each other have projects of their own. *Untested in a real project.*
    """

    jobs: pulumi.Output[str]
    """`projects/<project>/roles/<role>`: to run jobs; granted on the project."""
    notebook: pulumi.Output[str]
    """To use a notebook; granted on the notebook."""
    signs: pulumi.Output[str]
    """To sign tokens of an account; granted on the account."""

    def __init__(self, name: str, args: GcpJobRolesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        stack = args["stack"]
        self.jobs = self._role(name, stack, "jobs", "Run jobs", JOBS)
        self.notebook = self._role(name, stack, "notebook", "Use a notebook", NOTEBOOK)
        self.signs = self._role(name, stack, "signs", "Sign tokens of an account", SIGNS)
        self.register_declared()

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
