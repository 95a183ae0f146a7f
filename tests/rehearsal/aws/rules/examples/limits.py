"""Examples of the limits of single values: type, property, a value inside and one outside."""

from typing import Any

from tests.rehearsal.aws.rules.world import DROP, Example, limit

_TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
_GROUP, _CLUSTER = "eks/nodeGroup:NodeGroup", "eks/cluster:Cluster"
_PLACEMENT, _FLOW_LOG = "ec2/placementGroup:PlacementGroup", "ec2/flowLog:FlowLog"
_RESERVATION = "ec2/capacityReservation:CapacityReservation"
_LUSTRE = "fsx/lustreFileSystem:LustreFileSystem"
_LINK = "fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_EFS, _POINT = "efs/fileSystem:FileSystem", "efs/accessPoint:AccessPoint"
_LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_ENCRYPTION = "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
_AURORA, _INSTANCE = "rds/cluster:Cluster", "rds/clusterInstance:ClusterInstance"
_ROLE, _KEY, _LOGS = "iam/role:Role", "kms/key:Key", "cloudwatch/logGroup:LogGroup"
_SECRET = "secretsmanager/secret:Secret"
_BUDGET = "budgets/budget:Budget"
_SCORED = "kubeSchedulerConfig.nodeResourcesFit.scoringStrategy.resources"
_TAINT = {"key": "gpu", "value": "yes", "effect": "NO_SCHEDULE"}
_SCRATCH: dict[str, Any] = {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": DROP}
_EXPIRY = "rules[0].noncurrentVersionExpiration"


def _notices(count: int) -> list[dict[str, Any]]:
    notice = {
        "comparisonOperator": "GREATER_THAN",
        "notificationType": "ACTUAL",
        "thresholdType": "PERCENTAGE",
        "subscriberEmailAddresses": ["a@example.com"],
    }
    return [{**notice, "threshold": 10 * index} for index in range(count)]


def _taints(**changes: str) -> list[dict[str, str]]:
    return [{**_TAINT, **changes}]


EXAMPLES: dict[str, Example] = {
    "AWS-LIM-001": limit(_TEMPLATE, "name", "pool-1", "a pool"),
    "AWS-LIM-002": limit(_TEMPLATE, "metadataOptions.httpPutResponseHopLimit", 2, 65),
    "AWS-LIM-003": limit(_TEMPLATE, "metadataOptions.httpTokens", "required", "always"),
    "AWS-LIM-004": limit(_TEMPLATE, "instanceMarketOptions.marketType", "capacity-block", "block"),
    "AWS-LIM-005": limit(_TEMPLATE, "networkInterfaces[1].interfaceType", "efa-only", "EFA"),
    "AWS-LIM-006": limit(_TEMPLATE, "blockDeviceMappings[0].ebs.volumeType", "gp2", "ssd"),
    "AWS-LIM-008": limit(
        _TEMPLATE, "capacityReservationSpecification.capacityReservationPreference", "open", "always"
    ),
    "AWS-LIM-010": limit(_PLACEMENT, "spreadLevel", "rack", "zone"),
    "AWS-LIM-011": limit(_RESERVATION, "instanceCount", 1000, 0),
    "AWS-LIM-013": limit(_FLOW_LOG, "maxAggregationInterval", 60, 300),
    "AWS-LIM-014": limit(_FLOW_LOG, "trafficType", "REJECT", "DROP"),
    "AWS-LIM-015": limit("vpc/securityGroupIngressRule:SecurityGroupIngressRule", "toPort", 65535, 65536),
    "AWS-LIM-016": limit("ec2/securityGroup:SecurityGroup", "name", "web", "sg-web"),
    "AWS-LIM-020": limit(_CLUSTER, "name", "dev_1", "-dev"),
    "AWS-LIM-021": limit(
        _CLUSTER, "enabledClusterLogTypes", ["audit"], ["audits"], "enabledClusterLogTypes[0]"
    ),
    "AWS-LIM-023": limit(
        _CLUSTER,
        "encryptionConfig",
        {"resources": ["secrets"], "provider": {"keyArn": "arn:k"}},
        {"resources": ["pods"], "provider": {"keyArn": "arn:k"}},
        "encryptionConfig.resources[0]",
    ),
    "AWS-LIM-025": limit(_CLUSTER, "vpcConfig.securityGroupIds", ["$efa"], ["$efa"] * 6),
    "AWS-LIM-026": limit(_GROUP, "capacityType", "SPOT", "RESERVED"),
    "AWS-LIM-027": limit(_GROUP, "amiType", "BOTTLEROCKET_x86_64_NVIDIA", "AL2024_x86_64_NVIDIA"),
    "AWS-LIM-028": limit(_GROUP, "scalingConfig.minSize", 0, -1),
    "AWS-LIM-029": limit(
        _GROUP,
        "scalingConfig",
        {"minSize": 0, "desiredSize": 0, "maxSize": 1},
        {"minSize": 0, "desiredSize": 0, "maxSize": 0},
        "scalingConfig.maxSize",
    ),
    "AWS-LIM-030": limit(_GROUP, "instanceTypes", ["m7i.large"], ["m7i.large"] * 21, launchTemplate=DROP),
    "AWS-LIM-031": limit(_GROUP, "taints", [_TAINT], _taints(effect="NoSchedule"), "taints[0].effect"),
    "AWS-LIM-032": limit(_GROUP, "taints", [_TAINT], _taints(key="k" * 64), "taints[0].key"),
    "AWS-LIM-033": limit(_GROUP, "taints", [_TAINT] * 50, [_TAINT] * 51),
    "AWS-LIM-034": limit(_GROUP, "updateConfig.maxUnavailable", 100, 101),
    "AWS-LIM-035": limit(_GROUP, "nodeGroupName", "n" * 63, "n" * 64),
    "AWS-LIM-036": limit("eks/accessEntry:AccessEntry", "type", "EC2", "NODE"),
    "AWS-LIM-037": limit(
        "eks/accessPolicyAssociation:AccessPolicyAssociation", "accessScope.type", "cluster", "all"
    ),
    "AWS-LIM-038": limit(_CLUSTER, f"{_SCORED}[0].name", "nvidia.com/gpu", "amd.com/gpu"),
    "AWS-LIM-039": limit(_CLUSTER, f"{_SCORED}[0].weight", 100, 101),
    "AWS-LIM-040": limit(_LUSTRE, "deploymentType", "PERSISTENT_2", "PERSISTENT_3"),
    "AWS-LIM-041": limit(_LUSTRE, "storageType", "SSD", "NVME"),
    "AWS-LIM-042": limit(_LUSTRE, "automaticBackupRetentionDays", 90, 91),
    "AWS-LIM-043": limit(_LUSTRE, "weeklyMaintenanceStartTime", "1:05:00", "0:05:00"),
    "AWS-LIM-044": limit(_LUSTRE, "dailyAutomaticBackupStartTime", "05:00", "25:00"),
    "AWS-LIM-045": limit(_LUSTRE, "dataCompressionType", "LZ4", "ZSTD"),
    "AWS-LIM-046": limit(_LUSTRE, "importPath", "s3://$bucket", "$bucket", **_SCRATCH),
    "AWS-LIM-047": limit(_LINK, "importedFileChunkSize", 1024, 0),
    "AWS-LIM-048": limit(_LUSTRE, "metadataConfiguration.mode", "AUTOMATIC", "MANUAL"),
    "AWS-LIM-049": limit(_LINK, "dataRepositoryPath", "s3://$bucket/x", "$bucket/x"),
    "AWS-LIM-050": limit(_LINK, "fileSystemPath", "/x", "x"),
    "AWS-LIM-056": limit(_EFS, "throughputMode", "elastic", "burst"),
    "AWS-LIM-057": limit(_EFS, "creationToken", "t" * 64, "t" * 65),
    "AWS-LIM-058": limit(
        _EFS,
        "lifecyclePolicies",
        [{"transitionToIa": "AFTER_1_DAY"}],
        [{"transitionToIa": "AFTER_2_DAYS"}],
        "lifecyclePolicies[0].transitionToIa",
    ),
    "AWS-LIM-059": limit(_POINT, "rootDirectory.path", "/a/b/c/d", "/a/b/c/d/e"),
    "AWS-LIM-060": limit(
        _POINT,
        "rootDirectory.creationInfo",
        {"ownerUid": 1, "ownerGid": 1, "permissions": "0755"},
        {"ownerUid": 1, "ownerGid": 1, "permissions": "rwx"},
        "rootDirectory.creationInfo.permissions",
    ),
    "AWS-LIM-065": limit(_LIFECYCLE, "rules[0].status", "Disabled", "On"),
    "AWS-LIM-066": limit(_LIFECYCLE, "rules[0].id", "i" * 255, "i" * 256),
    "AWS-LIM-067": limit(
        _LIFECYCLE,
        "rules[0].transitions",
        [{"days": 9, "storageClass": "GLACIER"}],
        [{"days": 9, "storageClass": "ICE"}],
        "rules[0].transitions[0].storageClass",
    ),
    "AWS-LIM-068": limit(_LIFECYCLE, f"{_EXPIRY}.noncurrentDays", 1, 0),
    "AWS-LIM-069": limit(
        _LIFECYCLE,
        _EXPIRY,
        {"noncurrentDays": 1, "newerNoncurrentVersions": 100},
        {"noncurrentDays": 1, "newerNoncurrentVersions": 101},
        f"{_EXPIRY}.newerNoncurrentVersions",
    ),
    "AWS-LIM-071": limit(
        _ENCRYPTION, "rules[0].applyServerSideEncryptionByDefault.sseAlgorithm", "aws:kms", "kms"
    ),
    "AWS-LIM-075": limit(_AURORA, "backupRetentionPeriod", 35, 36),
    "AWS-LIM-076": limit(_AURORA, "serverlessv2ScalingConfiguration.secondsUntilAutoPause", 300, 60),
    "AWS-LIM-077": limit(_INSTANCE, "monitoringInterval", 60, 45, monitoringRoleArn="arn:r"),
    "AWS-LIM-078": limit(_INSTANCE, "promotionTier", 15, 16),
    "AWS-LIM-079": limit(_AURORA, "port", 5432, 80),
    "AWS-LIM-080": limit(_AURORA, "clusterIdentifier", "db-1", "db--1"),
    "AWS-LIM-081": limit(_INSTANCE, "identifier", "db-1", "1db"),
    "AWS-LIM-082": limit(_AURORA, "engine", "aurora-mysql", "aurora"),
    "AWS-LIM-100": limit(_ROLE, "name", "worker", "my role"),
    "AWS-LIM-101": limit("iam/policy:Policy", "name", "reads", "reads!"),
    "AWS-LIM-102": limit(_ROLE, "path", "/team/", "team"),
    "AWS-LIM-103": limit(_ROLE, "maxSessionDuration", 43200, 60),
    "AWS-LIM-104": limit(_ROLE, "description", "d" * 1000, "d" * 1001),
    "AWS-LIM-105": limit(_KEY, "deletionWindowInDays", 7, 6),
    "AWS-LIM-106": limit(_KEY, "rotationPeriodInDays", 90, 89, enableKeyRotation=True),
    "AWS-LIM-109": limit("kms/alias:Alias", "name", "alias/my-data", "alias/my data"),
    "AWS-LIM-110": limit(_SECRET, "name", "team/admin", "team admin"),
    "AWS-LIM-112": limit(
        "secretsmanager/secretVersion:SecretVersion", "secretString", "s" * 65536, "s" * 65537
    ),
    "AWS-LIM-113": limit(_LOGS, "retentionInDays", 14, 15),
    "AWS-LIM-114": limit(_LOGS, "name", "/stack/flow#1", "flow logs"),
    "AWS-LIM-116": limit("sns/topicSubscription:TopicSubscription", "protocol", "email-json", "mail"),
    "AWS-LIM-120": limit(_BUDGET, "name", "month", "team:month"),
    "AWS-LIM-122": limit(_BUDGET, "budgetType", "USAGE", "MONEY"),
    "AWS-LIM-123": limit(_BUDGET, "notifications", _notices(10), _notices(11)),
    "AWS-LIM-124": limit(_BUDGET, "notifications[0].notificationType", "FORECASTED", "PLANNED"),
    "AWS-LIM-125": limit(_BUDGET, "notifications[0].comparisonOperator", "EQUAL_TO", ">"),
    "AWS-LIM-126": limit(_BUDGET, "notifications[0].threshold", 100, -1),
    "AWS-LIM-127": limit(_BUDGET, "notifications[0].thresholdType", "ABSOLUTE_VALUE", "PERCENT"),
    "AWS-LIM-128": limit(_BUDGET, "timePeriodStart", "2026-01-01_00:00", "2026-01-01"),
}
