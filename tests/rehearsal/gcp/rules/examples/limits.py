"""Limits of single values: the last value that is accepted, and one beyond it."""

from typing import Any

Example = tuple[str, list[Any], dict[str, Any], dict[str, Any], str]
TOPIC, SUBSCRIPTION = "pubsub/topic:Topic", "pubsub/subscription:Subscription"
DATASET, DISK = "bigquery/dataset:Dataset", "compute/disk:Disk"
INSTANCE, POOL = "compute/instance:Instance", "container/nodePool:NodePool"
SUBNETWORK, ROUTER = "compute/subnetwork:Subnetwork", "compute/router:Router"
CHECK, BUCKET = "compute/healthCheck:HealthCheck", "storage/bucket:Bucket"
SQL, REPOSITORY = "sql/databaseInstance:DatabaseInstance", "artifactregistry/repository:Repository"
SERVICE, SCHEDULED = "cloudrunv2/service:Service", "cloudscheduler/job:Job"
TARGET = {"httpTarget": {"uri": "https://example.com/"}}
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
    "GCP-COMPUTE-024": (INSTANCE, [], {"tags": ["web-1"]}, {"tags": ["web-"]}, "tags[0]"),
    "GCP-COMPUTE-025": limit("compute/backendService:BackendService", "name", "b-1", "1b"),
    "GCP-VM-005": limit(INSTANCE, "advancedMachineFeatures.threadsPerCore", 2, 4),
    "GCP-VM-006": limit(INSTANCE, "hostname", "vm.lab", "vm-lab"),
    "GCP-VM-050": limit(INSTANCE, "confidentialInstanceConfig.confidentialInstanceType", "CCA", "SGX"),
    "GCP-NOTEBOOK-041": limit(
        "workbench/instance:Instance", "gceSetup.bootDisk.diskSizeGb", "64000", "64001"
    ),
    "GCP-SQL-050": limit(SQL, "name", "db-1-", "db_1", settings={"activationPolicy": "ALWAYS"}),
    "GCP-DISK-005": limit(DISK, "physicalBlockSizeBytes", 16384, 8192),
    "GCP-HEALTH-003": limit(CHECK, "checkIntervalSec", 300, 301),
    "GCP-HEALTH-004": limit(CHECK, "unhealthyThreshold", 10, 12),
    "GCP-GKE-035": limit(POOL, "nodeConfig.diskSizeGb", 65536, 65537),
    "GCP-GKE-036": limit(
        "container/cluster:Cluster",
        "notificationConfig.pubsub.topic",
        "projects/p/topics/t",
        "t",
        initialNodeCount=1,
    ),
    "GCP-GKE-037": limit(POOL, "name", "a-1", "A"),
    "GCP-STORAGE-016": limit(BUCKET, "rpo", "DEFAULT", "TURBO"),
    "GCP-STORAGE-017": limit(BUCKET, "autoclass.terminalStorageClass", "NEARLINE", "STANDARD"),
    "GCP-STORAGE-018": (
        BUCKET,
        [],
        {"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"createdBefore": "2026-01-02"}}]},
        {"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"createdBefore": "2026"}}]},
        "lifecycleRules[0].condition.createdBefore",
    ),
    "GCP-KMS-012": limit("kms/cryptoKey:CryptoKey", "name", "a_B-1", "a.b"),
    "GCP-KMS-013": (
        "kms/cryptoKey:CryptoKey",
        [],
        {"destroyScheduledDuration": "3600s", "importOnly": True, "skipInitialVersionCreation": True},
        {"destroyScheduledDuration": "86399s"},
        "destroyScheduledDuration",
    ),
    "GCP-IAM-020": limit("serviceaccount/account:Account", "displayName", "a" * 100, "a" * 101),
    "GCP-PUBSUB-005": limit(TOPIC, "messageRetentionDuration", "2678400s", "2678401s"),
    "GCP-PUBSUB-006": limit(SUBSCRIPTION, "expirationPolicy.ttl", "86400s", "86399s"),
    "GCP-PUBSUB-007": limit(SUBSCRIPTION, "retryPolicy.minimumBackoff", "600s", "601s"),
    "GCP-PUBSUB-008": limit(SUBSCRIPTION, "pushConfig.pushEndpoint", "https://a.b", "http://a.b"),
    "GCP-BIGQUERY-004": limit(DATASET, "storageBillingModel", "PHYSICAL", "COLD"),
    "GCP-SECRET-002": limit("secretmanager/secret:Secret", "ttl", "3600s", "1h"),
    "GCP-SECRET-003": (
        "secretmanager/secret:Secret",
        [],
        {"rotation": {"rotationPeriod": "3600s"}, "topics": [{"name": "projects/p/topics/t"}]},
        {"rotation": {"rotationPeriod": "3599s"}, "topics": [{"name": "projects/p/topics/t"}]},
        "rotation.rotationPeriod",
    ),
    "GCP-SECRET-004": limit(
        "secretmanager/secret:Secret", "expireTime", "2030-01-01T00:00:00Z", "2030-01-01"
    ),
    "GCP-RUN-003": limit(SERVICE, "template.containers.ports.containerPort", 65535, 65536),
    "GCP-RUN-004": limit(SERVICE, "template.timeout", "3600s", "3601s"),
    "GCP-RUN-005": limit(SERVICE, "template.maxInstanceRequestConcurrency", 1000, 1001),
    "GCP-RUN-006": limit(SERVICE, "template.containers.image", "a/b:c", "a b"),
    "GCP-NOTEBOOK-040": limit("workbench/instance:Instance", "desiredState", "ACTIVE", "RUNNING"),
    "GCP-SCHEDULER-002": limit(SCHEDULED, "retryConfig.retryCount", 5, 6, **TARGET),
    "GCP-SCHEDULER-003": limit(SCHEDULED, "name", "a_B-1", "a b", **TARGET),
    "GCP-SCHEDULER-004": limit(SCHEDULED, "retryConfig.minBackoffDuration", "5s", "5m", **TARGET),
    "GCP-SCHEDULER-005": limit(SCHEDULED, "httpTarget.uri", "https://a.b", "a.b"),
    "GCP-REDIS-001": limit("redis/instance:Instance", "memorySizeGb", 300, 301),
    "GCP-REDIS-002": limit("redis/instance:Instance", "redisVersion", "REDIS_6_X", "7.2"),
    "GCP-DNS-001": limit("dns/managedZone:ManagedZone", "dnsName", "a.b.", "a.b"),
    "GCP-VPCACCESS-001": limit("vpcaccess/connector:Connector", "ipCidrRange", "10.8.0.0/28", "10.8.0.0/24"),
    "GCP-VPCACCESS-002": limit("vpcaccess/connector:Connector", "name", "a-b-" + "c" * 21, "a-b-" + "c" * 22),
    "GCP-VPCACCESS-003": limit("vpcaccess/connector:Connector", "minInstances", 9, 10),
    "GCP-VPCACCESS-004": limit("vpcaccess/connector:Connector", "maxInstances", 3, 2),
    "GCP-MONITORING-001": limit(
        "monitoring/alertPolicy:AlertPolicy", "conditions.conditionThreshold.duration", "120s", "90s"
    ),
    "GCP-SQL-010": limit(SQL, "settings.insightsConfig.queryStringLength", 256, 255),
    "GCP-SQL-011": limit(SQL, "settings.backupConfiguration.transactionLogRetentionDays", 35, 36),
    "GCP-PUBSUB-001": limit(TOPIC, "name", "my-google.topic_1", "goog-topic"),
    "GCP-PUBSUB-002": limit(SUBSCRIPTION, "ackDeadlineSeconds", 10, 9),
    "GCP-PUBSUB-003": limit(SUBSCRIPTION, "deadLetterPolicy.maxDeliveryAttempts", 5, 4),
    "GCP-PUBSUB-004": limit(TOPIC, "messageRetentionDuration", "600s", "599s"),
    "GCP-BIGQUERY-001": limit(DATASET, "datasetId", "a_1", "a-1"),
    "GCP-BIGQUERY-002": limit(DATASET, "defaultTableExpirationMs", 3600000, 3599999),
    "GCP-BIGQUERY-003": limit(DATASET, "maxTimeTravelHours", "48", "47"),
    "GCP-SECRET-001": limit("secretmanager/secret:Secret", "secretId", "A_1-b", "a.b"),
    "GCP-RUN-002": limit("cloudrunv2/service:Service", "name", "w" * 49, "w" * 50),
    "GCP-RUN-007": limit("cloudrunv2/job:Job", "name", "w" * 63, "w" * 64),
    "GCP-SCHEDULER-001": (
        SCHEDULED,
        [],
        {"attemptDeadline": "0s", "appEngineHttpTarget": {"relativeUri": "/"}},
        {"attemptDeadline": "14s", **TARGET},
        "attemptDeadline",
    ),
    "GCP-REGISTRY-001": limit(REPOSITORY, "format", "CONDA", "IMAGES"),
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
    "GCP-DISK-001": limit(DISK, "type", "hyperdisk-ml", "ssd"),
    "GCP-DISK-002": limit(DISK, "size", 65536, 65537),
    "GCP-DISK-003": limit(DISK, "accessMode", "READ_ONLY_MANY", "READ_ONLY_SINGLE"),
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
