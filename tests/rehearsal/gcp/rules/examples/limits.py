"""Limits of single values: the last value that is accepted, and one beyond it."""

from typing import Any

Example = tuple[str, list[Any], dict[str, Any], dict[str, Any], str]
TOPIC, SUBSCRIPTION = "pubsub/topic:Topic", "pubsub/subscription:Subscription"
DATASET, DISK = "bigquery/dataset:Dataset", "compute/disk:Disk"
INSTANCE, POOL = "compute/instance:Instance", "container/nodePool:NodePool"
SUBNETWORK, ROUTER = "compute/subnetwork:Subnetwork", "compute/router:Router"
CHECK, BUCKET = "compute/healthCheck:HealthCheck", "storage/bucket:Bucket"
SQL, REPOSITORY = "sql/databaseInstance:DatabaseInstance", "artifactregistry/repository:Repository"
CLASS = {"condition": {"age": 3}}


def limit(token: str, path: str, good: Any, bad: Any, **more: Any) -> Example:
    """An example about one value."""

    def inputs(value: Any) -> dict[str, Any]:
        for name in reversed(path.split(".")):
            value = {name: value}
        return {**more, **value}

    return token, [], inputs(good), inputs(bad), path


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, Example] = {
    "GCP-PUBSUB-001": limit(TOPIC, "name", "my-google.topic_1", "goog-topic"),
    "GCP-PUBSUB-002": limit(SUBSCRIPTION, "ackDeadlineSeconds", 10, 9),
    "GCP-PUBSUB-003": limit(SUBSCRIPTION, "deadLetterPolicy.maxDeliveryAttempts", 5, 4),
    "GCP-PUBSUB-004": limit(TOPIC, "messageRetentionDuration", "600s", "599s"),
    "GCP-BIGQUERY-001": limit(DATASET, "datasetId", "a_1", "a-1"),
    "GCP-BIGQUERY-002": limit(DATASET, "defaultTableExpirationMs", 3600000, 3599999),
    "GCP-BIGQUERY-003": limit(DATASET, "maxTimeTravelHours", "48", "47"),
    "GCP-SECRET-001": limit("secretmanager/secret:Secret", "secretId", "A_1-b", "a.b"),
    "GCP-RUN-002": limit("cloudrunv2/service:Service", "name", "web-1", "web-"),
    "GCP-SCHEDULER-001": limit(
        "cloudscheduler/job:Job", "attemptDeadline", "15s", "14s", httpTarget={"uri": "https://example.com/"}
    ),
    "GCP-REGISTRY-001": limit(REPOSITORY, "format", "docker", "IMAGES"),
    "GCP-REGISTRY-002": limit(REPOSITORY, "repositoryId", "us.gcr.io", "team_images"),
    "GCP-SQL-009": limit(SQL, "settings.backupConfiguration.startTime", "23:59", "24:00"),
    "GCP-STORAGE-013": limit(BUCKET, "publicAccessPrevention", "inherited", "off"),
    "GCP-STORAGE-014": limit(BUCKET, "name", "goo-g-data", "my-google-data"),
    "GCP-STORAGE-015": (
        BUCKET,
        [],
        {"lifecycleRules": [{"action": {"type": "SetStorageClass", "storageClass": "NEARLINE"}, **CLASS}]},
        {"lifecycleRules": [{"action": {"type": "SetStorageClass"}, **CLASS}]},
        "lifecycleRules[0].action.storageClass",
    ),
    "GCP-COMPUTE-021": (
        SUBNETWORK,
        [],
        {"ipCidrRange": "10.1.0.0/29", "secondaryIpRanges": [{"ipCidrRange": "2001:db8:0:2::/64"}]},
        {"ipCidrRange": "10.1.0.0/30"},
        "ipCidrRange",
    ),
    "GCP-COMPUTE-022": limit(SUBNETWORK, "logConfig.flowSampling", 1, 1.1),
    "GCP-COMPUTE-023": limit(ROUTER, "bgp.keepaliveInterval", 60, 61),
    "GCP-HEALTH-001": limit(CHECK, "tcpHealthCheck.port", 65535, 65536),
    "GCP-HEALTH-002": limit(CHECK, "tcpHealthCheck.proxyHeader", "PROXY_V1", "PROXY_V2"),
    "GCP-DISK-001": limit(DISK, "type", "hyperdisk-ml", "ssd"),
    "GCP-DISK-002": limit(DISK, "size", 65536, 65537),
    "GCP-DISK-003": limit(DISK, "accessMode", "READ_ONLY_MANY", "READ_WRITE"),
    "GCP-DISK-004": (
        DISK,
        [],
        {"type": "pd-extreme", "provisionedIops": 10000},
        {"type": "pd-ssd", "provisionedIops": 10000},
        "provisionedIops",
    ),
    "GCP-VM-003": limit(INSTANCE, "scheduling.onHostMaintenance", "TERMINATE", "STOP"),
    "GCP-VM-004": limit(INSTANCE, "scheduling.provisioningModel", "FLEX_START", "FLEX"),
    "GCP-GKE-033": limit(POOL, "maxPodsPerNode", 8, 7),
    "GCP-GKE-034": limit(POOL, "nodeConfig.imageType", "cos_containerd", "RHEL"),
    "GCP-KMS-010": (
        "kms/cryptoKey:CryptoKey",
        [],
        {"rotationPeriod": "86400s"},
        {"rotationPeriod": "86400s", "purpose": "MAC"},
        "rotationPeriod",
    ),
}
