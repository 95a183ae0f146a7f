"""The login of a manager on another cloud to a GKE cluster: Workload Identity Federation (docs/adr/0100)."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.cluster.manager_login import connecting_account
from components.ordering import after

# The subject by default is the ARN of the session, and one of EKS Pod Identity exceeds the 127 bytes of
# google.subject. The attribute is that of the default mapping (IAM REST reference, attributeMapping).
MAPPING = {
    "google.subject": "assertion.arn.extract('assumed-role/{role_name}/')",
    "attribute.aws_role": (
        "assertion.arn.extract('{account_arn}assumed-role/') + 'assumed-role/'"
        " + assertion.arn.extract('assumed-role/{role_name}/')"
    ),
}


class GcpFederatedManagerLoginArgs(TypedDict):
    """The role of the manager's dispatcher on AWS, and the project of the worker."""

    stack: str
    """Name of the worker's stack, after which account and role are named."""
    manager: str
    """Name of the manager's stack."""
    project: str
    """The project of the worker."""
    project_number: pulumi.Input[str]
    """Its number."""
    aws_account: str
    """AWS account of the manager."""
    aws_role: str
    """Name of the role of the dispatcher's pod there, which need not exist yet."""


class GcpFederatedManagerLogin(Component):
    """A service account; a role of AWS gets its tokens, without a key, and nothing else does.

    A workload identity pool of its own admits one account of AWS, and of that the sessions of one role. Its
    id has the number of the service account, which no other ever has: a deleted pool keeps its id for 30
    days. The account has one permission, as that of `GcpManagerLogin`. *Untested in a real project.*
    """

    email: pulumi.Output[str]
    """Address of the account; dependents come after its permissions."""
    unique_id: pulumi.Output[str]
    """Number of the account: its name in an API server for tokens without the address."""
    provider: pulumi.Output[str]
    """Full name of the provider, the audience of the manager's request."""

    def __init__(self, name: str, args: GcpFederatedManagerLoginArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account, connects = connecting_account(
            self, name, stack=args["stack"], manager=args["manager"], project=args["project"]
        )
        role = session_role(args["aws_account"], args["aws_role"])
        pool = gcp.iam.WorkloadIdentityPool(
            f"{name}-pool",
            workload_identity_pool_id=account.unique_id.apply(pool_id),
            display_name=f"Manager of {args['stack']}"[:32],
            description=f"The dispatcher of {args['manager']}, which is on AWS",
            opts=self.child(),
        )
        admitted = gcp.iam.WorkloadIdentityPoolProvider(
            f"{name}-provider",
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id=provider_id(args["aws_account"]),
            display_name="Role of the dispatcher",
            aws=gcp.iam.WorkloadIdentityPoolProviderAwsArgs(account_id=args["aws_account"]),
            attribute_mapping=MAPPING,
            attribute_condition=condition(role),
            opts=self.child(),
        )
        number = pulumi.Output.from_input(args["project_number"])
        full = pulumi.Output.all(number, pool.workload_identity_pool_id).apply(lambda both: pool_name(*both))
        uses = iam.on_account(
            self,
            f"{name}-uses",
            account.name,
            "roles/iam.workloadIdentityUser",
            full.apply(lambda known: f"principalSet://{known}/attribute.aws_role/{role}"),
        )
        ready: list[pulumi.Resource] = [connects, uses, admitted]
        self.email = after(account.email, ready)
        self.unique_id = after(account.unique_id, ready)
        self.provider = after(
            full.apply(lambda known: f"//{known}/providers/{provider_id(args['aws_account'])}"), ready
        )
        self.register_declared()


def pool_id(number: str) -> str:
    """Id of the pool for an account of this number, of 21 digits: 4 to 32 characters are possible."""
    return f"manager-{number}"


def provider_id(account: str) -> str:
    """Id of the provider of an account of AWS in the pool: one that was deleted keeps its id for 30 days."""
    return f"aws-{account}"


def pool_name(number: str, pool: str) -> str:
    """Full name of a pool of the project with this number, as in audiences and principals."""
    return f"iam.googleapis.com/projects/{number}/locations/global/workloadIdentityPools/{pool}"


def session_role(account: str, role: str) -> str:
    """The ARN of the sessions of a role, without the name of one, as `attribute.aws_role` has it."""
    return f"arn:aws:sts::{account}:assumed-role/{role}"


def condition(role: str) -> str:
    """The attribute condition that admits the sessions of one role alone."""
    return f"assertion.arn.startsWith('{role}/')"
