"""Places, machine types, GPUs, roles, members, firewalls, tiers and versions: accepted and refused."""

from typing import Any

INSTANCE, POOL = "compute/instance:Instance", "container/nodePool:NodePool"
CLUSTER, BUCKET = "container/cluster:Cluster", "storage/bucket:Bucket"
FIREWALL, SQL = "compute/firewall:Firewall", "sql/databaseInstance:DatabaseInstance"
SUBNETWORK, ADDRESS = "compute/subnetwork:Subnetwork", "compute/address:Address"
MEMBER = "pubsub/topicIAMMember:TopicIAMMember"
READER = "roles/storage.objectViewer"
SERVER = {"databaseVersion": "SQLSERVER_2019_STANDARD", "settings": {"tier": "db-custom-2-7680"}}
NETS: list[Any] = [
    ("compute/network:Network", "net", {"name": "net", "autoCreateSubnetworks": False}),
    (
        SUBNETWORK,
        "sub",
        {"name": "sub", "network": "net", "ipCidrRange": "10.0.0.0/20", "region": "us-east1"},
    ),
]


def machine(kind: str = "n2-standard-4", **more: Any) -> dict[str, Any]:
    return {
        "name": "vm",
        "zone": "us-central1-a",
        "machineType": kind,
        "bootDisk": {"initializeParams": {"image": "debian-cloud/debian-12"}},
        "networkInterfaces": [{"network": "default"}],
        **more,
    }


def stored(kind: str) -> dict[str, Any]:
    settings = {"tier": "db-custom-2-7680", "edition": "ENTERPRISE", "diskType": kind}
    return {"name": "stored", "databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": settings}


def firewall(**more: Any) -> dict[str, Any]:
    return {"name": "web", "network": "default", "allows": [{"protocol": "tcp", "ports": ["80"]}], **more}


def database(tier: str) -> dict[str, Any]:
    return {"databaseVersion": "POSTGRES_15", "settings": {"tier": tier}}


def mysql(**backups: Any) -> dict[str, Any]:
    settings = {"tier": "db-f1-micro", "availabilityType": "REGIONAL", "backupConfiguration": backups}
    return {"databaseVersion": "MYSQL_8_0", "settings": settings}


def grant(role: str = "roles/pubsub.publisher", member: str = "user:a@example.com") -> dict[str, Any]:
    return {"topic": "t", "role": role, "member": member}


T4 = [{"type": "nvidia-tesla-t4", "count": 1}]
STOPS = {"onHostMaintenance": "TERMINATE"}
ANY = {"sourceRanges": ["0.0.0.0/0"]}
LINK = "projects/research/regions/{}/subnetworks/sub"

# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-VM-007": (
        INSTANCE,
        NETS,
        machine(zone="us-east1-b", networkInterfaces=[{"network": "net", "subnetwork": "sub"}]),
        machine(zone="us-east1-b", networkInterfaces=[{"network": "net"}]),
        "networkInterfaces[0].subnetwork",
    ),
    "GCP-VM-008": (
        INSTANCE,
        [],
        machine("c4-standard-4", bootDisk={"initializeParams": {"type": "hyperdisk-balanced"}}),
        machine("c4-standard-4", bootDisk={"initializeParams": {"type": "pd-balanced"}}),
        "bootDisk.initializeParams.type",
    ),
    "GCP-VM-009": (
        INSTANCE,
        [(INSTANCE, "subject", machine("n2-standard-4"))],
        machine("n2-standard-8", allowStoppingForUpdate=True),
        machine("n2-standard-8"),
        "machineType",
    ),
    "GCP-SQL-014": (
        SQL,
        [(SQL, "subject", stored("PD_SSD"))],
        {**stored("PD_SSD"), "deletionProtection": False},
        stored("PD_HDD"),
        "settings.diskType",
    ),
    "GCP-SQL-015": (
        SQL,
        [(SQL, "subject", stored("PD_SSD"))],
        {**stored("PD_SSD"), "databaseVersion": "POSTGRES_16"},
        {**stored("PD_SSD"), "databaseVersion": "POSTGRES_14"},
        "databaseVersion",
    ),
    "GCP-SQL-012": (
        SQL,
        [],
        mysql(enabled=True, binaryLogEnabled=True),
        mysql(enabled=True, binaryLogEnabled=True, pointInTimeRecoveryEnabled=True),
        "settings.backupConfiguration.pointInTimeRecoveryEnabled",
    ),
    "GCP-SQL-013": (
        SQL,
        [],
        {**SERVER, "rootPassword": "long-enough-1"},
        SERVER,
        "rootPassword",
    ),
    "GCP-STORAGE-019": (
        "storage/bucketIAMMember:BucketIAMMember",
        [(BUCKET, "shut", {"name": "shut", "location": "US", "publicAccessPrevention": "enforced"})],
        {"bucket": "shut", "role": READER, "member": "user:a@example.com"},
        {"bucket": "shut", "role": READER, "member": "allUsers"},
        "member",
    ),
    "GCP-IAM-011": (
        "iam/workloadIdentityPool:WorkloadIdentityPool",
        [],
        {"workloadIdentityPoolId": "gcpx-pool"},
        {"workloadIdentityPoolId": "gcp-pool"},
        "workloadIdentityPoolId",
    ),
    "GCP-IAM-010": (
        "projects/iAMCustomRole:IAMCustomRole",
        [],
        {"roleId": "reads", "title": "Reads", "permissions": ["resourcemanager.projects.get"]},
        {"roleId": "reads", "title": "Reads", "permissions": ["resourcemanager.projects.list"]},
        "permissions[0]",
    ),
    "GCP-STORAGE-020": (
        "storage/bucketAccessControl:BucketAccessControl",
        [
            (BUCKET, "uniform", {"name": "uniform", "location": "US", "uniformBucketLevelAccess": True}),
            (BUCKET, "plain", {"name": "plain", "location": "US"}),
        ],
        {"bucket": "plain", "role": "READER", "entity": "user-a@example.com"},
        {"bucket": "uniform", "role": "READER", "entity": "user-a@example.com"},
        "bucket",
    ),
    "GCP-IAM-009": (
        "projects/iAMMember:IAMMember",
        [],
        {"project": "research", "role": READER, "member": "user:a@example.com"},
        {"project": "research", "role": READER, "member": "allUsers"},
        "member",
    ),
    "GCP-COMPUTE-026": (
        FIREWALL,
        [],
        firewall(sourceRanges=["10.0.0.0/8", "192.168.0.0/16"]),
        firewall(sourceRanges=["10.0.0.0/8", "2001:db8::/32"]),
        "sourceRanges",
    ),
    "GCP-PLACE-001": (
        CLUSTER,
        [],
        {"location": "us-central1-c", "initialNodeCount": 1},
        {"location": "us-central-1c", "initialNodeCount": 1},
        "location",
    ),
    "GCP-PLACE-002": (
        CLUSTER,
        [],
        {"location": "us-central1", "initialNodeCount": 1},
        {"location": "us-northeast1", "initialNodeCount": 1},
        "location",
    ),
    "GCP-STORAGE-010": (BUCKET, [], {"location": "NAM4"}, {"location": "us-central1-a"}, "location"),
    "GCP-STORAGE-011": (
        BUCKET,
        [],
        {"location": "US", "storageClass": "NEARLINE"},
        {"location": "US", "storageClass": "WARM"},
        "storageClass",
    ),
    "GCP-STORAGE-012": (
        BUCKET,
        [],
        {"location": "US", "lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]},
        {"location": "US", "lifecycleRules": [{"action": {"type": "Remove"}, "condition": {"age": 1}}]},
        "lifecycleRules[0].action.type",
    ),
    "GCP-MACHINE-001": (INSTANCE, [], machine("n2-custom-6-3072"), machine("n9-standard-4"), "machineType"),
    "GCP-MACHINE-002": (INSTANCE, [], machine("e2-medium"), machine("e3-standard-4"), "machineType"),
    "GCP-GPU-013": (
        POOL,
        [],
        {"cluster": "c", "nodeConfig": {"machineType": "n1-standard-4", "guestAccelerators": T4}},
        {"cluster": "c", "nodeConfig": {"machineType": "e2-standard-4", "guestAccelerators": T4}},
        "nodeConfig.guestAccelerators[0].type",
    ),
    "GCP-VM-001": (
        INSTANCE,
        [],
        machine("g2-standard-4", scheduling=STOPS),
        machine("g2-standard-4"),
        "scheduling.onHostMaintenance",
    ),
    "GCP-VM-002": (
        INSTANCE,
        [],
        machine(scheduling={"preemptible": True, "automaticRestart": False}),
        machine(scheduling={"preemptible": True}),
        "scheduling.automaticRestart",
    ),
    "GCP-POOL-031": (
        POOL,
        [],
        {"cluster": "c", "nodeConfig": {"spot": True, "preemptible": False}},
        {"cluster": "c", "nodeConfig": {"spot": True, "preemptible": True}},
        "nodeConfig.preemptible",
    ),
    "GCP-COMPUTE-018": (
        FIREWALL,
        [],
        firewall(sourceTags=["web"]),
        firewall(targetTags=["web"]),
        "sourceRanges",
    ),
    "GCP-COMPUTE-019": (
        FIREWALL,
        [],
        firewall(**ANY),
        firewall(allows=[{"protocol": "icmp", "ports": ["80"]}], **ANY),
        "allows[0].ports[0]",
    ),
    "GCP-COMPUTE-020": (
        ADDRESS,
        NETS,
        {"name": "a", "addressType": "INTERNAL", "region": "us-east1", "subnetwork": LINK.format("us-east1")},
        {"name": "a", "addressType": "INTERNAL", "region": "us-west1", "subnetwork": LINK.format("us-east1")},
        "subnetwork",
    ),
    "GCP-IAM-005": (MEMBER, [], grant(), grant("pubsub.publisher"), "role"),
    "GCP-IAM-006": (MEMBER, [], grant(), grant("roles/pubsub.publishr"), "role"),
    "GCP-IAM-007": (MEMBER, [], grant(), grant("roles/pubsub.laterRole"), "role"),
    "GCP-IAM-008": (
        MEMBER,
        [],
        grant(member="serviceAccount:research.svc.id.goog[lab/train]"),
        grant(member="user:alice"),
        "member",
    ),
    "GCP-SQL-008": (SQL, [], database("db-custom-2-7680"), database("db-n1-standard-1"), "settings.tier"),
    "GCP-GKE-031": (
        CLUSTER,
        [],
        {"location": "us-central1", "enableAutopilot": True},
        {"location": "us-central1-a", "enableAutopilot": True},
        "location",
    ),
    "GCP-GKE-032": (
        CLUSTER,
        [],
        {"location": "us-central1", "initialNodeCount": 1, "minMasterVersion": "1.37.1-gke.100"},
        {"location": "us-central1", "initialNodeCount": 1, "minMasterVersion": "1.28"},
        "minMasterVersion",
    ),
}
