"""Rights to encryption keys: a service encrypts as its service agent, which needs the right."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import service_agents
from rehearsal.gcp.rules.book import BOOK, ProjectView, items

# Type -> (property that names a key, the API whose agent uses it).
_USERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gcp:storage/bucket:Bucket": (("encryption.defaultKmsKeyName", "storage.googleapis.com"),),
    "gcp:container/cluster:Cluster": (
        ("databaseEncryption.keyName", "container.googleapis.com"),
        ("nodeConfig.bootDiskKmsKey", "compute.googleapis.com"),
    ),
    "gcp:container/nodePool:NodePool": (("nodeConfig.bootDiskKmsKey", "compute.googleapis.com"),),
    "gcp:sql/databaseInstance:DatabaseInstance": (("encryptionKeyName", "sqladmin.googleapis.com"),),
    "gcp:secretmanager/secret:Secret": (
        ("replication.auto.customerManagedEncryption.kmsKeyName", "secretmanager.googleapis.com"),
    ),
    "gcp:pubsub/topic:Topic": (("kmsKeyName", "pubsub.googleapis.com"),),
    "gcp:filestore/instance:Instance": (("kmsKeyName", "file.googleapis.com"),),
    "gcp:artifactregistry/repository:Repository": (("kmsKeyName", "artifactregistry.googleapis.com"),),
}
_MAY = ("roles/cloudkms.cryptoKeyEncrypterDecrypter", "roles/owner")
_OF_KEYS = ("kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding")
_OF_PROJECTS = ("projects/iAMMember:IAMMember", "projects/iAMBinding:IAMBinding")
_STORAGE = (
    "Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been "
    "authorized to use this key."
)


def _check(token: str, inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    if world.preview:  # the grant may be created in the same update
        return
    for path, api in _USERS[token]:
        key = world.find(at(inputs, path), "kms/cryptoKey:CryptoKey")
        # The bindings of keys outside of the rehearsal's programs are unknown.
        if key is None or not key.urn:
            continue
        member = f"serviceAccount:{service_agents.email(api, world.number)}"
        if not _granted(world, key, member):
            denied = (
                f"Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource '{key.id}' "
                "(or it may not exist)."
            )
            yield Violation(
                path,
                _STORAGE if api == "storage.googleapis.com" else denied,
                f"Grant roles/cloudkms.cryptoKeyEncrypterDecrypter on the key to {member} first, and let "
                "this resource depend on the grant.",
                "forbidden",
            )


def _granted(world: ProjectView, key: Record, member: str) -> bool:
    found = [one for token in _OF_KEYS for one in world.users(key, token)]
    found += [one for token in _OF_PROJECTS for one in world.all(token)]
    return any(one.inputs.get("role") in _MAY and member in _members(one.inputs) for one in found)


def _members(inputs: Mapping[str, Any]) -> list[Any]:
    return [value for value in (inputs.get("member"), *items(inputs.get("members"))) if value is not UNKNOWN]


@BOOK.rule_around(
    "GCP-KMS-002",
    "gcp:storage/bucket:Bucket",
    source="Cloud Storage documentation, Use customer-managed encryption keys (words of the refusal)",
)
def _buckets(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Cloud Storage may use the key of a bucket."""
    yield from _check("gcp:storage/bucket:Bucket", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-003",
    "gcp:container/cluster:Cluster",
    source="GKE documentation, Encrypt secrets at the application layer; Use customer-managed keys",
)
def _clusters(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agents of GKE and Compute Engine may use the keys of a cluster."""
    yield from _check("gcp:container/cluster:Cluster", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-004",
    "gcp:container/nodePool:NodePool",
    source="GKE documentation, Use customer-managed encryption keys",
)
def _pools(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Compute Engine may use the key of the disks of nodes."""
    yield from _check("gcp:container/nodePool:NodePool", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-005",
    "gcp:sql/databaseInstance:DatabaseInstance",
    source="Cloud SQL documentation, Use customer-managed encryption keys (service account of each product)",
)
def _databases(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Cloud SQL may use the key of an instance."""
    yield from _check("gcp:sql/databaseInstance:DatabaseInstance", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-006",
    "gcp:secretmanager/secret:Secret",
    source="Secret Manager documentation, Enable CMEK (grant the service identity)",
)
def _secrets(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Secret Manager may use the key of a secret."""
    yield from _check("gcp:secretmanager/secret:Secret", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-007",
    "gcp:pubsub/topic:Topic",
    source="Pub/Sub documentation, Configure message encryption (grant the service agent)",
)
def _topics(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Pub/Sub may use the key of a topic."""
    yield from _check("gcp:pubsub/topic:Topic", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-008",
    "gcp:filestore/instance:Instance",
    source="Filestore documentation, Encrypt data with customer-managed encryption keys (service account)",
)
def _shares(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Filestore may use the key of an instance."""
    yield from _check("gcp:filestore/instance:Instance", inputs, world)


@BOOK.rule_around(
    "GCP-KMS-009",
    "gcp:artifactregistry/repository:Repository",
    source="Artifact Registry documentation, Enable CMEK (grant the service account)",
)
def _repositories(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of Artifact Registry may use the key of a repository."""
    yield from _check("gcp:artifactregistry/repository:Repository", inputs, world)
