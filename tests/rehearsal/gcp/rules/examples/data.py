"""For every rule about storage, databases, identities and budgets: what is accepted and what is refused."""

from typing import Any

NETWORK, NETWORKS = "compute/network:Network", "projects/research/global/networks"
BUCKET, FOLDER = "storage/bucket:Bucket", "storage/managedFolder:ManagedFolder"
FILESTORE, LUSTRE = "filestore/instance:Instance", "lustre/instance:Instance"
SQL, BUDGET = "sql/databaseInstance:DatabaseInstance", "billing/budget:Budget"
MEMBER, ADDRESS = "projects/iAMMember:IAMMember", "compute/address:Address"
Made = tuple[str, str, dict[str, Any]]
NETS: list[Made] = [
    (NETWORK, "net", {"name": "net", "autoCreateSubnetworks": False}),
    (NETWORK, "bare", {"name": "bare", "autoCreateSubnetworks": False}),
    (
        "compute/globalAddress:GlobalAddress",
        "peer",
        {"name": "peer", "purpose": "VPC_PEERING", "addressType": "INTERNAL", "network": "net"},
    ),
    (
        "servicenetworking/connection:Connection",
        "psa",
        {
            "network": "net",
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": ["peer"],
        },
    ),
]
NARROW: list[Made] = [
    *NETS,
    (NETWORK, "narrow", {"name": "narrow", "autoCreateSubnetworks": False}),
    (
        "compute/globalAddress:GlobalAddress",
        "few",
        {
            "name": "few",
            "purpose": "VPC_PEERING",
            "addressType": "INTERNAL",
            "network": "narrow",
            "prefixLength": 25,
        },
    ),
    (
        "servicenetworking/connection:Connection",
        "psa-narrow",
        {
            "network": "narrow",
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": ["few"],
        },
    ),
]
# A /23 for services: Lustre or two others.
CROWDED: list[Made] = [
    (NETWORK, "crowded", {"name": "crowded", "autoCreateSubnetworks": False}),
    (
        "compute/globalAddress:GlobalAddress",
        "half",
        {
            "name": "half",
            "purpose": "VPC_PEERING",
            "addressType": "INTERNAL",
            "network": "crowded",
            "prefixLength": 23,
        },
    ),
    (
        "servicenetworking/connection:Connection",
        "psa-crowded",
        {
            "network": "crowded",
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": ["half"],
        },
    ),
    (
        SQL,
        "taking",
        {
            "databaseVersion": "POSTGRES_15",
            "settings": {"tier": "db-f1-micro", "ipConfiguration": {"privateNetwork": f"{NETWORKS}/crowded"}},
        },
    ),
]
BUCKETS: list[Made] = [
    (BUCKET, "uniform", {"name": "uniform", "location": "US", "uniformBucketLevelAccess": True}),
    (BUCKET, "plain", {"name": "plain", "location": "US"}),
]
ZONE = "us-central1-a"
MODES = {"networks": [{"network": "default", "modes": ["MODE_IPV4"]}]}


def lustre(**more: Any) -> dict[str, Any]:
    return {
        "capacityGib": "9000",
        "perUnitStorageThroughput": "1000",
        "filesystem": "scratch",
        "instanceId": "scratch",
        "location": ZONE,
        "network": "net",
        **more,
    }


def share(tier: str, gib: int, **more: Any) -> dict[str, Any]:
    return {
        "tier": tier,
        "fileShares": {"name": "home", "capacityGb": gib},
        "networks": [{"network": "net"}],
        **more,
    }


def _filled() -> list[Made]:
    networks = [{"network": "crowded", "modes": ["MODE_IPV4"], "connectMode": "PRIVATE_SERVICE_ACCESS"}]
    return [(FILESTORE, "homes", share("ENTERPRISE", 1024, networks=networks, location="us-central1"))]


IAM_LOGINS = [{"name": "cloudsql.iam_authentication", "value": "on"}]


def sql(**settings: Any) -> dict[str, Any]:
    return {"databaseVersion": "POSTGRES_15", "settings": settings}


def budget(**more: Any) -> dict[str, Any]:
    return {"billingAccount": "A", "amount": {"lastPeriodAmount": True}, **more}


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-STORAGE-001": (BUCKET, [], {"name": "runs_2026.example"}, {"name": "Runs"}, "name"),
    "GCP-STORAGE-002": (
        BUCKET,
        [],
        {"hierarchicalNamespace": {"enabled": True}, "uniformBucketLevelAccess": True},
        {"hierarchicalNamespace": {"enabled": True}},
        "uniformBucketLevelAccess",
    ),
    "GCP-STORAGE-003": (
        BUCKET,
        [],
        {"softDeletePolicy": {"retentionDurationSeconds": 0}},
        {"softDeletePolicy": {"retentionDurationSeconds": 86400}},
        "softDeletePolicy.retentionDurationSeconds",
    ),
    "GCP-STORAGE-004": (
        BUCKET,
        [],
        {"retentionPolicy": {"retentionPeriod": "86400"}},
        {"retentionPolicy": {"retentionPeriod": "3155760000"}},
        "retentionPolicy.retentionPeriod",
    ),
    "GCP-STORAGE-005": (
        BUCKET,
        [],
        {"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 7}}]},
        {"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {}}]},
        "lifecycleRules[0].condition",
    ),
    "GCP-STORAGE-006": (
        BUCKET,
        [],
        {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}},
        {"autoclass": {"enabled": False, "terminalStorageClass": "ARCHIVE"}},
        "autoclass.terminalStorageClass",
    ),
    "GCP-STORAGE-008": (
        FOLDER,
        BUCKETS,
        {"bucket": "uniform", "name": "a/"},
        {"bucket": "plain", "name": "a/"},
        "bucket",
    ),
    "GCP-STORAGE-009": (
        BUCKET,
        [],
        {"location": "NAM4", "rpo": "ASYNC_TURBO"},
        {"location": "us-central1", "rpo": "ASYNC_TURBO"},
        "rpo",
    ),
    "GCP-FILESTORE-001": (
        FILESTORE,
        [],
        share("ZONAL", 1280),
        share("BASIC_SSD", 1024),
        "fileShares.capacityGb",
    ),
    "GCP-FILESTORE-002": (
        FILESTORE,
        [],
        share("ZONAL", 1024, protocol="NFS_V4_1"),
        share("BASIC_HDD", 1024, protocol="NFS_V4_1"),
        "protocol",
    ),
    "GCP-FILESTORE-007": (
        FILESTORE,
        [(FILESTORE, "subject", share("BASIC_HDD", 2048, **MODES))],
        share("BASIC_HDD", 3072, **MODES),
        share("BASIC_HDD", 1024, **MODES),
        "fileShares.capacityGb",
    ),
    "GCP-FILESTORE-003": (
        FILESTORE,
        [],
        share("ZONAL", 1024),
        share("ZONAL", 1024, networks=[{"network": "a"}, {"network": "b"}]),
        "networks[1]",
    ),
    "GCP-FILESTORE-004": (
        FILESTORE,
        [],
        share("ZONAL", 1024, deletionProtectionEnabled=True, deletionProtectionReason="homes"),
        share("ZONAL", 1024, deletionProtectionReason="homes"),
        "deletionProtectionReason",
    ),
    "GCP-FILESTORE-005": (
        FILESTORE,
        [],
        share("REGIONAL", 1024, location="us-central1"),
        share("REGIONAL", 1024, location=ZONE),
        "location",
    ),
    "GCP-LUSTRE-001": (LUSTRE, NETS, lustre(), lustre(capacityGib="12000"), "capacityGib"),
    "GCP-LUSTRE-002": (
        LUSTRE,
        NETS,
        lustre(),
        lustre(perUnitStorageThroughput="200"),
        "perUnitStorageThroughput",
    ),
    "GCP-LUSTRE-003": (LUSTRE, NETS, lustre(), lustre(filesystem="checkpoints"), "filesystem"),
    "GCP-LUSTRE-004": (LUSTRE, NETS, lustre(), lustre(instanceId="1st"), "instanceId"),
    "GCP-LUSTRE-005": (LUSTRE, NETS, lustre(), lustre(network="bare"), "network"),
    "GCP-LUSTRE-006": (
        LUSTRE,
        NETS,
        lustre(dynamicTierOptions={"mode": "DISABLED"}),
        lustre(dynamicTierOptions={"mode": "DEFAULT_CACHE"}),
        "perUnitStorageThroughput",
    ),
    "GCP-IAM-002": (
        MEMBER,
        [],
        {"member": "user:a@example.com"},
        {"member": "users:a@example.com"},
        "member",
    ),
    "GCP-LABEL-001": (ADDRESS, [], {"labels": {"team": "a-1"}}, {"labels": {"Team": "a"}}, "labels.Team"),
    "GCP-LABEL-002": (
        BUCKET,
        [],
        {"labels": {f"k{index}": "" for index in range(64)}},
        {"labels": {f"k{index}": "" for index in range(65)}},
        "labels",
    ),
    "GCP-SQL-001": (
        SQL,
        [],
        sql(edition="ENTERPRISE_PLUS", tier="db-perf-optimized-N-2"),
        sql(edition="ENTERPRISE_PLUS", tier="db-custom-2-13312"),
        "settings.tier",
    ),
    "GCP-SQL-002": (
        SQL,
        NETS,
        sql(tier="db-f1-micro", ipConfiguration={"ipv4Enabled": False, "privateNetwork": f"{NETWORKS}/net"}),
        sql(tier="db-f1-micro", ipConfiguration={"ipv4Enabled": False}),
        "settings.ipConfiguration.privateNetwork",
    ),
    "GCP-SQL-003": (
        SQL,
        NETS,
        sql(tier="db-f1-micro", ipConfiguration={"privateNetwork": f"{NETWORKS}/net"}),
        sql(tier="db-f1-micro", ipConfiguration={"privateNetwork": f"{NETWORKS}/bare"}),
        "settings.ipConfiguration.privateNetwork",
    ),
    "GCP-SQL-005": (
        SQL,
        [],
        {"databaseVersion": "POSTGRES_16", "settings": {"tier": "db-f1-micro", "edition": "ENTERPRISE"}},
        {"databaseVersion": "POSTGRES_16", "settings": {"tier": "db-f1-micro"}},
        "settings.tier",
    ),
    "GCP-SQL-007": (
        "sql/user:User",
        [
            (SQL, "open", {"name": "open", **sql(tier="db-f1-micro", databaseFlags=IAM_LOGINS)}),
            (SQL, "closed", {"name": "closed", **sql(tier="db-f1-micro")}),
        ],
        {"name": "mlflow@research.iam", "instance": "open", "type": "CLOUD_IAM_SERVICE_ACCOUNT"},
        {"name": "mlflow@research.iam", "instance": "closed", "type": "CLOUD_IAM_SERVICE_ACCOUNT"},
        "type",
    ),
    "GCP-SQL-006": (
        SQL,
        NARROW,
        sql(tier="db-f1-micro", ipConfiguration={"privateNetwork": f"{NETWORKS}/net"}),
        sql(tier="db-f1-micro", ipConfiguration={"privateNetwork": f"{NETWORKS}/narrow"}),
        "settings.ipConfiguration.privateNetwork",
    ),
    "GCP-LUSTRE-007": (LUSTRE, [*NETS, *CROWDED], lustre(), lustre(network="crowded"), "network"),
    "GCP-FILESTORE-006": (
        FILESTORE,
        [*CROWDED, *_filled()],
        share("BASIC_HDD", 1024, networks=[{"network": "crowded"}]),
        share("BASIC_HDD", 1024, networks=[{"network": "crowded", "connectMode": "PRIVATE_SERVICE_ACCESS"}]),
        "networks[0].network",
    ),
    "GCP-SQL-004": (
        SQL,
        [],
        sql(tier="db-f1-micro", diskSize=10),
        sql(tier="db-f1-micro", diskSize=10, diskType="HYPERDISK_BALANCED"),
        "settings.diskSize",
    ),
    "GCP-BILLING-001": (
        BUDGET,
        [],
        budget(displayName="b" * 60),
        budget(displayName="b" * 61),
        "displayName",
    ),
    "GCP-BILLING-003": (
        BUDGET,
        [],
        budget(thresholdRules=[{"thresholdPercent": 0.9}]),
        budget(thresholdRules=[{"thresholdPercent": -0.1}]),
        "thresholdRules[0].thresholdPercent",
    ),
    "GCP-BILLING-004": (
        BUDGET,
        [],
        budget(budgetFilter={"calendarPeriod": "MONTH"}),
        budget(budgetFilter={"calendarPeriod": "MONTH", "customPeriod": {"startDate": {"year": 2026}}}),
        "budgetFilter.customPeriod",
    ),
    "GCP-BILLING-005": (
        BUDGET,
        [],
        budget(
            budgetFilter={
                "creditTypesTreatment": "INCLUDE_SPECIFIED_CREDITS",
                "creditTypes": ["PROMOTION"],
            }
        ),
        budget(budgetFilter={"projects": ["projects/1"], "creditTypes": ["PROMOTION"]}),
        "budgetFilter.creditTypes",
    ),
}
