"""A login at a Cloud SQL database: a Google service account, the user of its name, and who may be it."""

from typing import TypedDict
from urllib.parse import quote

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.ordering import after
from infra.naming import sanitize

# The name of a user in PostgreSQL has at most 63 characters: this name, `@`, a project's of up to 30, `.iam`.
ACCOUNT_LENGTH = 28
_SUFFIX = ".gserviceaccount.com"


class GcpDatabaseLoginArgs(TypedDict):
    """Which instance, and who logs in."""

    project: str
    instance: pulumi.Input[str]
    """Name of the Cloud SQL instance."""
    principal: pulumi.Input[str]
    """Who may log in: the pods of a Kubernetes service account, as IAM calls them."""


class GcpDatabaseLogin(Component):
    """What logs in with tokens that are good for an hour, in place of a password that somebody has to keep.

    Cloud SQL knows no pods, only Google service accounts. So this account is nothing but the name of a
    database user: its one right is to log in to this instance. The pods keep their own rights and ask for a
    token of the account when they need one, limited to logins (`secret_store.SecretManager.token`); their
    service account in Kubernetes is not annotated, or everything they do would be done by this account.

    A new user could make no table: since PostgreSQL 15, only the owner of a database makes some in `public`.
    Databases that are made through Cloud SQL belong to `cloudsqlsuperuser` (Cloud SQL documentation, "About
    PostgreSQL users and roles"), so the user is a member of that role, which ends at this instance.

    Untested in a real project, the condition of the right first of all.
    """

    email: pulumi.Output[str]
    """The account, whose tokens log in; what uses it comes after its rights."""
    user: pulumi.Output[str]
    """The user, as PostgreSQL calls it."""

    def __init__(
        self, name: str, args: GcpDatabaseLoginArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        account = gcp.serviceaccount.Account(
            f"{name}-account",
            account_id=sanitize(name, max_length=ACCOUNT_LENGTH),
            display_name=f"Database user of {name}",
            opts=self.child(),
        )
        rights = [
            gcp.projects.IAMMember(
                f"{name}-login",
                project=args["project"],
                role="roles/cloudsql.instanceUser",
                member=account.member,
                condition={
                    "title": "one instance",
                    "expression": pulumi.Output.from_input(args["instance"]).apply(
                        lambda instance: only_instance(args["project"], instance)
                    ),
                },
                opts=self.child(),
            ),
            # Tokens of the account, and nothing else: the role may not sign in its name.
            gcp.serviceaccount.IAMMember(
                f"{name}-pods",
                service_account_id=account.name,
                role="roles/iam.workloadIdentityUser",
                member=args["principal"],
                opts=self.child(),
            ),
        ]
        name_there = account.email.apply(lambda email: email.removesuffix(_SUFFIX))
        user = gcp.sql.User(
            f"{name}-user",
            name=name_there,
            instance=args["instance"],
            type="CLOUD_IAM_SERVICE_ACCOUNT",
            database_roles=["cloudsqlsuperuser"],
            # It owns tables, so PostgreSQL would not delete it; it goes with its instance.
            deletion_policy="ABANDON",
            opts=self.child(),
        )
        self.email = after(account.email, [*rights, user])
        self.user = after(name_there, [*rights, user])
        self.register_outputs({"email": self.email, "user": self.user})


def only_instance(project: str, instance: str) -> str:
    """A condition of IAM that holds for one instance.

    Source: Cloud SQL documentation, "Use IAM Conditions", which shows it for `roles/cloudsql.client`.
    """
    return (
        f"resource.name == 'projects/{project}/instances/{instance}'"
        " && resource.type == 'sqladmin.googleapis.com/Instance'"
    )


def database_uri(user: str, address: str, port: int, database: str) -> str:
    """The address of a database for SQLAlchemy, without a password.

    `verify-ca`: every instance has an authority of its own, so a certificate that it signed is the
    instance's; the name in it is no address that could be compared.
    """
    return f"postgresql+psycopg2://{quote(user, safe='')}@{address}:{port}/{database}?sslmode=verify-ca"
