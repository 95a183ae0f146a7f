"""For every rule about keys: the service's agent has the right to use it, or another member has."""

from typing import Any

from rehearsal.accounts import project_number
from rehearsal.gcp import service_agents

RING = "projects/research/locations/us-central1/keyRings/ring"
KEY, BARE = f"{RING}/cryptoKeys/key", f"{RING}/cryptoKeys/bare"
NUMBER = project_number("research")
Example = tuple[str, list[Any], dict[str, Any], dict[str, Any], str]


def agent(api: str) -> str:
    """The agent of an API, as a member."""
    return f"serviceAccount:{service_agents.email(api, NUMBER)}"


def world(api: str) -> list[Any]:
    """A key for the agent of an API, and one for another."""
    other = "compute.googleapis.com" if api != "compute.googleapis.com" else "pubsub.googleapis.com"
    grants = [
        (
            "kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
            f"grant-{name}",
            {
                "cryptoKeyId": key,
                "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
                "member": agent(service),
            },
        )
        for name, key, service in (("key", KEY, api), ("bare", BARE, other))
    ]
    agents = [
        ("projects/serviceIdentity:ServiceIdentity", f"agent-{index}", {"service": service})
        for index, service in enumerate((api, other))
    ]
    return [
        *agents,
        ("kms/keyRing:KeyRing", "ring", {"name": "ring", "location": "us-central1"}),
        ("kms/cryptoKey:CryptoKey", "key", {"name": "key", "keyRing": RING}),
        ("kms/cryptoKey:CryptoKey", "bare", {"name": "bare", "keyRing": RING}),
        *grants,
    ]


def example(token: str, api: str, path: str, **more: Any) -> Example:
    def inputs(key: str) -> dict[str, Any]:
        value: Any = key
        for name in reversed(path.split(".")):
            value = {name: value}
        return {**more, **value}

    return (token, world(f"{api}.googleapis.com"), inputs(KEY), inputs(BARE), path)


SHARE = {"tier": "ZONAL", "fileShares": {"name": "home", "capacityGb": 1024}, "networks": [{"network": "n"}]}
EXAMPLES: dict[str, Example] = {
    "GCP-IAM-004": (
        "projects/iAMMember:IAMMember",
        [("projects/serviceIdentity:ServiceIdentity", "gke", {"service": "container.googleapis.com"})],
        {
            "role": "roles/viewer",
            "member": agent("container.googleapis.com"),
        },
        {
            "role": "roles/viewer",
            "member": agent("compute.googleapis.com"),
        },
        "member",
    ),
    "GCP-KMS-002": example("storage/bucket:Bucket", "storage", "encryption.defaultKmsKeyName"),
    "GCP-KMS-003": example(
        "container/cluster:Cluster", "container", "databaseEncryption.keyName", initialNodeCount=1
    ),
    "GCP-KMS-004": example("container/nodePool:NodePool", "compute", "nodeConfig.bootDiskKmsKey"),
    "GCP-KMS-005": example(
        "sql/databaseInstance:DatabaseInstance",
        "sqladmin",
        "encryptionKeyName",
        settings={"tier": "db-f1-micro"},
    ),
    "GCP-KMS-006": example(
        "secretmanager/secret:Secret",
        "secretmanager",
        "replication.auto.customerManagedEncryption.kmsKeyName",
    ),
    "GCP-KMS-007": example("pubsub/topic:Topic", "pubsub", "kmsKeyName"),
    "GCP-KMS-008": example("filestore/instance:Instance", "file", "kmsKeyName", **SHARE),
    "GCP-KMS-014": (
        "pubsub/topic:Topic",
        [],
        {"kmsKeyName": KEY},
        {"kmsKeyName": "key"},
        "kmsKeyName",
    ),
    "GCP-KMS-009": example("artifactregistry/repository:Repository", "artifactregistry", "kmsKeyName"),
}
