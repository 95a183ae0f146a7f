"""Permissions of Google's service agents to use a key."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.propagation import settled

_USES = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def may_use_key(
    component: Component,
    name: str,
    service: str,
    key_id: pulumi.Input[str],
    formerly_below: pulumi.Input[str] | None = None,
) -> gcp.kms.CryptoKeyIAMMember:
    """Let a service (such as `sqladmin.googleapis.com`) use a key; dependents come after this.

    Its service agent is an account of Google in the project, which does not exist until it is requested.
    `formerly_below` is the URN of a component that had both: were they created again, and these deleted
    afterwards, the permission would be removed.
    """
    aliases = [pulumi.Alias(parent=formerly_below)] if formerly_below is not None else []
    kept = component.child(pulumi.ResourceOptions(aliases=[*aliases]))
    agent = gcp.projects.ServiceIdentity(f"{name}-agent", service=service, opts=kept)
    return gcp.kms.CryptoKeyIAMMember(
        f"{name}-use",
        crypto_key_id=key_id,
        role=_USES,
        member=agent.member,
        opts=settled(kept, agent.member),
    )
