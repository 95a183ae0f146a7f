"""A login at a Cloud SQL database: a Google service account, the user of its name, and its principals."""

from collections.abc import Mapping
from functools import partial
from typing import TypedDict
from urllib.parse import quote

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.propagation import settled
from components.ordering import after

# The name of a user in PostgreSQL has at most 63 characters: this name, `@`, a project's of up to 30, `.iam`.
ACCOUNT_LENGTH = 28


class GcpDatabaseLoginArgs(TypedDict):
    """The instance, and the principals that log in."""

    project: str
    """The project's id."""
    instance: pulumi.Input[str]
    """Name of the Cloud SQL instance."""
    principals: Mapping[str, pulumi.Input[str]]
    """Principals that may log in, by a short name: pods of Kubernetes service accounts, as IAM members."""


class GcpDatabaseLogin(Component):
    """A login with tokens that are valid for an hour, in place of a stored password.

    Cloud SQL accepts no pods, only Google service accounts. So this account is only the name of a database
    user: its one permission is to log in to this instance. The pods keep their own permissions and request a
    token of the account when they need one, limited to logins (`secret_store.SecretManagerClient.token`);
    their service account in Kubernetes is not annotated, or all their actions would be those of this account.

    A new user could create no table: since PostgreSQL 15, only the owner of a database can in `public`.
    Databases that Cloud SQL creates belong to `cloudsqlsuperuser` (Cloud SQL documentation, "About
    PostgreSQL users and roles"), so the user is a member of that role, which ends at this instance.

    Untested in a real project, in particular the condition of the permission.
    """

    email: pulumi.Output[str]
    """The account, whose tokens log in; dependents come after its permissions."""
    user: pulumi.Output[str]
    """The user, as named in PostgreSQL."""

    def __init__(self, name: str, args: GcpDatabaseLoginArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = iam.service_account(
            self, f"{name}-account", name, f"Database user of {name}", most=ACCOUNT_LENGTH
        )
        # Tokens of the account, and nothing else: the role may not sign in its name.
        tokens = [
            iam.on_account(self, f"{name}-{who}", account.name, "roles/iam.workloadIdentityUser", principal)
            for who, principal in args["principals"].items()
        ]
        user, ready = database_user(self, name, args["project"], args["instance"], account)
        self.email = after(account.email, [*ready, *tokens])
        self.user = after(user, [*ready, *tokens])
        self.register_declared()


def database_user(
    component: Component,
    name: str,
    project: str,
    instance: pulumi.Input[str],
    account: gcp.serviceaccount.Account,
) -> tuple[pulumi.Output[str], list[pulumi.Resource]]:
    """The database user of an account, and the requirements of its login."""
    login = gcp.projects.IAMMember(
        f"{name}-login",
        project=project,
        role="roles/cloudsql.instanceUser",
        member=account.member,
        condition={
            "title": "one instance",
            "expression": pulumi.Output.from_input(instance).apply(partial(only_instance, project)),
        },
        opts=component.child(),
    )
    called = account.email.apply(lambda email: email.removesuffix(".gserviceaccount.com"))
    user = gcp.sql.User(
        f"{name}-user",
        name=called,
        instance=instance,
        type="CLOUD_IAM_SERVICE_ACCOUNT",
        database_roles=["cloudsqlsuperuser"],
        # It owns tables, so PostgreSQL would not delete it; it is deleted with its instance.
        deletion_policy="ABANDON",
        # A new instance has no role of IAM users for some seconds (terraform-provider-google issue 14233).
        opts=settled(component.child(), instance, account.email),
    )
    return called, [login, user]


def only_instance(project: str, instance: str) -> str:
    """A condition of IAM for one instance.

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
