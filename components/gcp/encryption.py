"""A customer-managed key of Cloud KMS for one purpose: it rotates, and only named users may use it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.propagation import settled
from components.ordering import after
from infra.naming import sanitize

ROTATION = "7776000s"
"""90 days, as CIS recommends for Google Cloud (CIS Google Cloud Platform Foundation Benchmark, 1.10)."""
DESTRUCTION = "2592000s"
"""30 days between the request to destroy a key and its end; everything that it encrypted is lost then."""
_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
# Names of keys and rings have at most 63 characters, of which Pulumi takes eight to make them unique.
_NAME = 55


@dataclass(frozen=True)
class EncryptionKey:
    """A key, and its name for its users."""

    resource: gcp.kms.CryptoKey
    id: pulumi.Output[str]
    """`projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>`; usable once its users have
    access."""


def encryption_key(
    component: Component,
    name: str,
    *,
    location: str,
    purpose: str,
    users: Mapping[str, pulumi.Input[str]],
    keep: bool = False,
) -> EncryptionKey:
    """A key for `users` alone (IAM members of agents by a short name of each), in a key ring of its own.

    `location` is that of the encrypted data: most services use no key of another. `purpose` is a word for
    the key's label. Cloud KMS never deletes rings and keys, and their names are never free again; Pulumi adds
    random characters, so that a destroyed stack can be created again. Destroying a key destroys its versions
    after 30 days. With `keep` it stays when the stack is deleted: for data that stays.
    """
    short = sanitize(name, max_length=_NAME)
    ring = gcp.kms.KeyRing(
        sanitize(f"{name}-ring", max_length=_NAME), location=location, opts=component.child()
    )
    key = gcp.kms.CryptoKey(
        short,
        key_ring=ring.id,
        purpose="ENCRYPT_DECRYPT",
        rotation_period=ROTATION,
        destroy_scheduled_duration=DESTRUCTION,
        deletion_policy="ABANDON" if keep else "DELETE",
        labels={"purpose": sanitize(purpose)},
        opts=component.child(),
    )
    grants = [
        gcp.kms.CryptoKeyIAMMember(
            f"{short}-{user}",
            crypto_key_id=key.id,
            role=_USER,
            member=member,
            opts=settled(component.child(), member),
        )
        for user, member in users.items()
    ]
    return EncryptionKey(resource=key, id=after(key.id, grants))


def service_agent(project_number: pulumi.Input[str], name: str) -> pulumi.Output[str]:
    """The IAM member of a service of Google in a project, such as `container-engine-robot` of GKE.

    `components.gcp.agents` creates it. Source: IAM documentation, "Service agents".
    """
    return pulumi.Output.concat(
        "serviceAccount:service-", project_number, "@", name, ".iam.gserviceaccount.com"
    )
