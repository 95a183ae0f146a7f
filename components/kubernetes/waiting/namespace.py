"""The namespace of a Job that `up` waits for: closed to all, with an account without a token."""

from collections.abc import Mapping

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Child
from components.kubernetes.network_policies import closed


def closed_namespace(
    prefix: str,
    namespace: str,
    account: str,
    labels: Mapping[str, str],
    child: Child,
) -> list[pulumi.Resource]:
    """Create the namespace, the policy that closes it and the account; the Job comes after the last two.

    `prefix` begins their logical names; the policy has the account's name.
    """
    space = core.v1.Namespace(
        f"{prefix}-namespace",
        metadata=meta.v1.ObjectMetaArgs(name=namespace, labels=dict(labels)),
        opts=child(),
    )
    inside = child(pulumi.ResourceOptions(depends_on=[space]))
    metadata = meta.v1.ObjectMetaArgs(name=account, namespace=namespace)
    policy = closed(f"{prefix}-policy", namespace, account, inside)
    made = core.v1.ServiceAccount(
        f"{prefix}-account", metadata=metadata, automount_service_account_token=False, opts=inside
    )
    return [policy, made]
