"""Rights to encryption keys: a service encrypts as its service agent, which needs the right."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.properties import at, steps, walk
from rehearsal.core.rules.model import EVERY, Rule, Violation
from rehearsal.gcp import service_agents
from rehearsal.gcp.rules.book import BOOK, ProjectView, items

# Rule, type, summary, source, and the properties that name a key with the API whose agent uses it.
_RULES = (
    (
        "GCP-KMS-002",
        "gcp:storage/bucket:Bucket",
        "The agent of Cloud Storage may use the key of a bucket.",
        "Cloud Storage documentation, Use customer-managed encryption keys (words of the refusal)",
        (("encryption.defaultKmsKeyName", "storage.googleapis.com"),),
    ),
    (
        "GCP-KMS-003",
        "gcp:container/cluster:Cluster",
        "The agents of GKE and Compute Engine may use the keys of a cluster.",
        "GKE documentation, Encrypt secrets at the application layer; Use customer-managed keys",
        (
            ("databaseEncryption.keyName", "container.googleapis.com"),
            ("nodeConfig.bootDiskKmsKey", "compute.googleapis.com"),
        ),
    ),
    (
        "GCP-KMS-004",
        "gcp:container/nodePool:NodePool",
        "The agent of Compute Engine may use the key of the disks of nodes.",
        "GKE documentation, Use customer-managed encryption keys",
        (("nodeConfig.bootDiskKmsKey", "compute.googleapis.com"),),
    ),
    (
        "GCP-KMS-005",
        "gcp:sql/databaseInstance:DatabaseInstance",
        "The agent of Cloud SQL may use the key of an instance.",
        "Cloud SQL documentation, Use customer-managed encryption keys (service account of each product)",
        (("encryptionKeyName", "sqladmin.googleapis.com"),),
    ),
    (
        "GCP-KMS-006",
        "gcp:secretmanager/secret:Secret",
        "The agent of Secret Manager may use the key of a secret.",
        "Secret Manager documentation, Enable CMEK (grant the service identity)",
        (("replication.auto.customerManagedEncryption.kmsKeyName", "secretmanager.googleapis.com"),),
    ),
    (
        "GCP-KMS-007",
        "gcp:pubsub/topic:Topic",
        "The agent of Pub/Sub may use the key of a topic.",
        "Pub/Sub documentation, Configure message encryption (grant the service agent)",
        (("kmsKeyName", "pubsub.googleapis.com"),),
    ),
    (
        "GCP-KMS-008",
        "gcp:filestore/instance:Instance",
        "The agent of Filestore may use the key of an instance.",
        "Filestore documentation, Encrypt data with customer-managed encryption keys (service account)",
        (("kmsKeyName", "file.googleapis.com"),),
    ),
    (
        "GCP-KMS-009",
        "gcp:artifactregistry/repository:Repository",
        "The agent of Artifact Registry may use the key of a repository.",
        "Artifact Registry documentation, Enable CMEK (grant the service account)",
        (("kmsKeyName", "artifactregistry.googleapis.com"),),
    ),
)
_MAY = ("roles/cloudkms.cryptoKeyEncrypterDecrypter", "roles/owner")
_KEY = re.compile(
    r"(?:.*/)?projects/[^/]+/locations/[^/]+/(?:keyRings/[^/]+/cryptoKeys|keyHandles)/[^/]+(?:/.*)?"
)
_NAMES = ("kmsKeyName", "defaultKmsKeyName")
_OF_KEYS = ("kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding")
OF_PROJECTS = ("projects/iAMMember:IAMMember", "projects/iAMBinding:IAMBinding")
_STORAGE = (
    "Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been "
    "authorized to use this key."
)


@BOOK.rule(
    "GCP-KMS-014",
    EVERY,
    source="discovery documents pubsub v1 (Topic.kmsKeyName), artifactregistry v1 (Repository.kmsKeyName), "
    "storage v1 (Bucket.encryption.defaultKmsKeyName)",
)
def _name_of_a_key(inputs: Properties) -> Iterator[Violation]:
    """A key is named by its project, location, ring and name."""
    for path, value in walk(inputs):
        given = isinstance(value, str) and value and steps(path)[-1] in _NAMES
        if given and not _KEY.fullmatch(value):
            fix = "Use the output id of the key: projects/P/locations/L/keyRings/R/cryptoKeys/K."
            yield Violation(path, f"{value} is not the name of a key", fix)


def _broken(uses: tuple[tuple[str, str], ...], inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    if world.preview:  # the grant may be created in the same update
        return
    for path, api in uses:
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
    found += [one for token in OF_PROJECTS for one in world.all(token)]
    return any(one.inputs.get("role") in _MAY and member in members(one.inputs) for one in found)


def members(inputs: Mapping[str, Any]) -> list[Any]:
    """The members of a grant or binding, as far as they are known."""
    return [value for value in (inputs.get("member"), *items(inputs.get("members"))) if value is not UNKNOWN]


for _id, _type, _summary, _source, _uses in _RULES:
    BOOK.add(Rule(_id, (_type,), _summary, _source, around=partial(_broken, _uses)))
