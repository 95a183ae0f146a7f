"""The login of the manager of several clusters to a GKE cluster: a service account (docs/adr/0099)."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.pod_account import pod_principal
from components.ordering import after
from infra.naming import sanitize

# Tokens of the account, and nothing else: the role may not sign in its name.
_USES = "roles/iam.workloadIdentityUser"
CONNECT = "container.clusters.connect"
"""To pass the DNS endpoint of clusters of the project; it reads no cluster and no object in one."""


class GcpManagerLoginArgs(TypedDict):
    """The pods of the manager's dispatcher, and the project of the worker."""

    stack: str
    """Name of the worker's stack, after which account and role are named."""
    manager: str
    """Name of the manager's stack."""
    project: str
    """The project of the worker."""
    project_number: NotRequired[pulumi.Input[str]]
    """Its number, once its workload pool exists: IAM accepts no pods before. Without it the manager is in
    another project, whose stack grants the use of the account (`GcpDispatcherUse`)."""
    namespace: str
    """Namespace of the dispatcher."""
    service_account: str
    """Its service account in Kubernetes, which need not exist yet."""


class GcpManagerLogin(Component):
    """A service account; the manager's dispatcher gets its tokens, and nothing else does.

    Its only role has one permission: to connect to clusters of the project. Role bindings of this worker
    alone name it, so on other clusters it has no permissions. The account is of the worker, so a worker
    exists before its manager, and outlives it; the dispatcher may use these accounts, and nothing else.

    A workload pool belongs to the project: pods of the same namespace and service account in another cluster
    of the project get the tokens, too. *Untested in a real project.*
    """

    email: pulumi.Output[str]
    """Address of the account; dependents come after its permissions."""
    unique_id: pulumi.Output[str]
    """Number of the account, which no other ever has: its name in an API server for tokens without the
    address."""

    def __init__(self, name: str, args: GcpManagerLoginArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        project = args["project"]
        account, connects = connecting_account(
            self, name, stack=args["stack"], manager=args["manager"], project=project
        )
        ready: list[pulumi.Resource] = [connects]
        if "project_number" in args:
            pods = pulumi.Output.from_input(args["project_number"]).apply(
                lambda number: pod_principal(project, number, args["namespace"], args["service_account"])
            )
            ready.append(iam.on_account(self, f"{name}-uses", account.name, _USES, pods))
        self.email = after(account.email, ready)
        self.unique_id = after(account.unique_id, ready)
        self.register_declared()


class GcpDispatcherUseArgs(TypedDict):
    """The pods of a dispatcher, and an account of a worker in another project."""

    email: str
    """Address of the account."""
    worker_project: str
    """Its project."""
    project: str
    """The project of the manager."""
    project_number: pulumi.Input[str]
    """Its number, once its workload pool exists: IAM accepts no pods before."""
    namespace: str
    """Namespace of the dispatcher."""
    service_account: str
    """Its service account in Kubernetes."""


class GcpDispatcherUse(Component):
    """The right of a manager's dispatcher to tokens of the account of a worker in another project.

    The manager's stack declares it, with a login to the worker's project: the workload pool of the manager's
    project need not exist when the worker is made. *Untested in a real project.*
    """

    principal: pulumi.Output[str]
    """The pods, as IAM names them; dependents come after the grant."""

    def __init__(self, name: str, args: GcpDispatcherUseArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        project, namespace, account = args["project"], args["namespace"], args["service_account"]
        pods = pulumi.Output.from_input(args["project_number"]).apply(
            lambda number: pod_principal(project, number, namespace, account)
        )
        full = f"projects/{args['worker_project']}/serviceAccounts/{args['email']}"
        granted = iam.on_account(self, f"{name}-uses", full, _USES, pods)
        self.principal = after(pods, [granted])
        self.register_declared()


def connecting_account(
    component: Component, name: str, *, stack: str, manager: str, project: str
) -> tuple[gcp.serviceaccount.Account, pulumi.Resource]:
    """The account of a worker for its manager, and its grant of the one permission."""
    account = iam.service_account(
        component, f"{name}-account", f"{stack}-manager", f"Login of the dispatcher of {manager} to {stack}"
    )
    role = gcp.projects.IAMCustomRole(
        f"{name}-role",
        role_id=sanitize(f"{stack}-manager").replace("-", "_"),
        title=f"Connect to {stack} as its manager",
        permissions=[CONNECT],
        opts=component.child(),
    )
    return account, iam.on_project(component, f"{name}-connects", project, role.name, account.member)
