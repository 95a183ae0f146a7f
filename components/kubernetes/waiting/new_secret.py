"""A Job that creates a Secret once, so that its values are in no state and no file."""

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Child
from components.kubernetes import access
from components.kubernetes.access import bound_role, may
from components.kubernetes.waiting.job import WaitingProgram, waiting_job


def secret_job(
    name: str, waits: WaitingProgram, child: Child, inside: pulumi.ResourceOptions
) -> pulumi.Resource:
    """The Job with an account of its own, which may create Secrets: no role can name a future one.

    `inside`: options for objects in the namespace.
    """
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=waits.account, namespace=waits.namespace),
        automount_service_account_token=False,
        opts=inside,
    )
    binding = bound_role(
        name,
        waits.account,
        [may("", "secrets", "create")],
        access.account(waits.account, waits.namespace),
        child,
        namespace=waits.namespace,
        opts=inside,
        needs=[account],
    )
    return waiting_job(name, waits, [binding], child)
