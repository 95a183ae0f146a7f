"""Service accounts, and grants of one role to one member, as children of a component."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from infra.naming import sanitize

LONGEST_ID = 30  # characters (IAM documentation, "Create service accounts")
Text = pulumi.Input[str]
# Before any stack: the condition always holds.
_ALWAYS = 'request.time > timestamp("2026-01-01T00:00:00Z")'


def service_account(
    component: Component,
    name: str,
    account_id: str,
    title: str,
    *,
    most: int = LONGEST_ID,
    project: str | None = None,
) -> gcp.serviceaccount.Account:
    """A service account, with its id cut to `most` characters."""
    short = sanitize(account_id, max_length=most)
    return gcp.serviceaccount.Account(
        name, project=project, account_id=short, display_name=title, opts=component.child()
    )


def on_project(  # noqa: PLR0917 - as the others, and whose grant it is
    component: Component, name: str, project: str, role: Text, member: Text, own: str | None = None
) -> gcp.projects.IAMMember:
    """Grant a role on the project.

    `own`: title of a condition that always holds. A policy has one binding for a role with a condition, and
    each title makes another one (IAM documentation, "Allow policies", and pulumi-gcp, projects.IAMMember): so
    stacks that grant the same role to the same member do not remove each other's grant.
    """
    condition = None
    if own is not None:
        condition = gcp.projects.IAMMemberConditionArgs(title=own, expression=_ALWAYS)
    return gcp.projects.IAMMember(
        name, project=project, role=role, member=member, condition=condition, opts=component.child()
    )


def on_folder(  # noqa: PLR0917 - a folder is named by two
    component: Component, name: str, bucket: Text, folder: Text, role: str, member: Text
) -> gcp.storage.ManagedFolderIamMember:
    """Grant a role on a managed folder of a bucket: on its objects, and on listing it."""
    return gcp.storage.ManagedFolderIamMember(
        name, bucket=bucket, managed_folder=folder, role=role, member=member, opts=component.child()
    )


def on_account(
    component: Component, name: str, account: Text, role: Text, member: Text
) -> gcp.serviceaccount.IAMMember:
    """Grant a role on a service account, by its full name."""
    return gcp.serviceaccount.IAMMember(
        name, service_account_id=account, role=role, member=member, opts=component.child()
    )


def on_bucket(
    component: Component, name: str, bucket: Text, role: str, member: Text
) -> gcp.storage.BucketIAMMember:
    """Grant a role on a whole bucket."""
    return gcp.storage.BucketIAMMember(name, bucket=bucket, role=role, member=member, opts=component.child())


def on_secret(
    component: Component, name: str, secret: Text, role: str, member: Text
) -> gcp.secretmanager.SecretIamMember:
    """Grant a role on a secret, by its id."""
    return gcp.secretmanager.SecretIamMember(
        name, secret_id=secret, role=role, member=member, opts=component.child()
    )


def on_topic(
    component: Component, name: str, topic: Text, role: str, member: Text
) -> gcp.pubsub.TopicIAMMember:
    """Grant a role on a topic."""
    return gcp.pubsub.TopicIAMMember(name, topic=topic, role=role, member=member, opts=component.child())
