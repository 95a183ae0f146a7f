"""Service agents: how Google's own services come to use a key."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component

_USES = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def may_use_key(
    component: Component, name: str, service: str, key_id: pulumi.Input[str]
) -> gcp.kms.CryptoKeyIAMMember:
    """Let a service (such as `sqladmin.googleapis.com`) use a key; what it encrypts comes after this.

    Its service agent is an account of Google in the project, which does not exist until somebody asks for it.
    """
    agent = gcp.projects.ServiceIdentity(f"{name}-agent", service=service, opts=component.child())
    return gcp.kms.CryptoKeyIAMMember(
        f"{name}-use", crypto_key_id=key_id, role=_USES, member=agent.member, opts=component.child()
    )
