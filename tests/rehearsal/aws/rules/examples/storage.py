"""Examples of the rules about FSx, EFS, S3 and RDS."""

from tests.rehearsal.aws.rules.world import DROP, Example, policy

_LUSTRE = "fsx/lustreFileSystem:LustreFileSystem"
_LINK = "fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_EFS, _TARGET = "efs/fileSystem:FileSystem", "efs/mountTarget:MountTarget"
_LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_ENCRYPTION = "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
_CLUSTER, _INSTANCE = "rds/cluster:Cluster", "rds/clusterInstance:ClusterInstance"
_UNIT, _SCALING = "perUnitStorageThroughput", "serverlessv2ScalingConfiguration"
_METADATA = {"metadataConfiguration": {"mode": "AUTOMATIC"}}
_SCRATCH = {"deploymentType": "SCRATCH_2", _UNIT: DROP}
_HDD = {"deploymentType": "PERSISTENT_1", "storageType": "HDD", _UNIT: 12, "storageCapacity": 6000}
_TIERED = {
    "storageType": "INTELLIGENT_TIERING",
    _UNIT: DROP,
    "storageCapacity": DROP,
    "throughputCapacity": 4000,
    "dataReadCacheConfiguration": {"sizingMode": "NO_CACHE"},
    "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000},
}
_EXPRESS = {"bucket": "fast--use1-az4--x-s3"}
_KEY = "arn:aws:kms:us-east-1:123456789012:key/1"

EXAMPLES = {
    "AWS-FSX-001": Example(_LUSTRE, _UNIT, {_UNIT: 200}, {_UNIT: 500}),
    "AWS-FSX-002": Example(_LUSTRE, _UNIT, {"deploymentType": "SCRATCH_2"}, _SCRATCH),
    "AWS-FSX-003": Example(
        _LUSTRE,
        "efaEnabled",
        {**_SCRATCH, "efaEnabled": True},
        {"efaEnabled": True, "storageCapacity": 19200, **_METADATA},
    ),
    "AWS-FSX-004": Example(
        _LUSTRE,
        "metadataConfiguration",
        {"efaEnabled": True, "storageCapacity": 19200},
        {"efaEnabled": True, "storageCapacity": 19200, **_METADATA},
    ),
    "AWS-FSX-005": Example(_LUSTRE, "metadataConfiguration", {**_SCRATCH, **_METADATA}, _METADATA),
    "AWS-FSX-006": Example(
        _LUSTRE,
        "metadataConfiguration.iops",
        {"metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 9000}},
        {"metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 24000}},
    ),
    "AWS-FSX-007": Example(
        _LUSTRE,
        "metadataConfiguration.iops",
        {"metadataConfiguration": {"mode": "AUTOMATIC", "iops": 1500}},
        _METADATA,
    ),
    "AWS-FSX-008": Example(_LUSTRE, "storageCapacity", {"storageCapacity": 3600}, {"storageCapacity": 4800}),
    "AWS-FSX-009": Example(
        _LUSTRE,
        "storageType",
        {"storageType": "HDD", "driveCacheType": "READ"},
        {**_HDD, "driveCacheType": "READ"},
    ),
    "AWS-FSX-010": Example(_LUSTRE, "throughputCapacity", {**_TIERED, "throughputCapacity": 5000}, _TIERED),
    "AWS-FSX-011": Example(_LUSTRE, "driveCacheType", _HDD, {**_HDD, "driveCacheType": "NONE"}),
    "AWS-FSX-012": Example(
        _LUSTRE, "importPath", {"importPath": "s3://$bucket"}, {**_SCRATCH, "importPath": "s3://$bucket"}
    ),
    "AWS-FSX-013": Example(
        _LUSTRE,
        "exportPath",
        {**_SCRATCH, "exportPath": "s3://$bucket/out"},
        {**_SCRATCH, "importPath": "s3://$bucket", "exportPath": "s3://$bucket/out"},
    ),
    "AWS-FSX-014": Example(
        _LUSTRE, "fileSystemTypeVersion", {"fileSystemTypeVersion": "2.10"}, {"fileSystemTypeVersion": "2.15"}
    ),
    "AWS-FSX-015": Example(
        _LUSTRE,
        "automaticBackupRetentionDays",
        {**_SCRATCH, "automaticBackupRetentionDays": 7},
        {"automaticBackupRetentionDays": 7},
    ),
    "AWS-FSX-016": Example(
        _LUSTRE, "securityGroupIds", {"securityGroupIds": ["$no_in"]}, {"securityGroupIds": ["$efa"]}
    ),
    "AWS-FSX-020": Example(
        _LINK,
        "dataRepositoryPath",
        {"dataRepositoryPath": "s3://exampl-data/x"},
        {"dataRepositoryPath": "s3://made-elsewhere/x"},
    ),
    "AWS-FSX-021": Example(_LINK, "fileSystemId", {"fileSystemId": "$first"}),
    "AWS-FSX-022": Example(_LINK, "fileSystemPath", {"fileSystemPath": "/taken/below"}),
    "AWS-FSX-023": Example(_LINK, "dataRepositoryPath", {"dataRepositoryPath": "s3://$bucket/taken/"}),
    "AWS-FSX-024": Example(_LINK, "fileSystemId", {"fileSystemId": "$full"}),
    "AWS-EFS-001": Example(
        _EFS,
        "provisionedThroughputInMibps",
        {"throughputMode": "provisioned"},
        {"throughputMode": "provisioned", "provisionedThroughputInMibps": 64},
    ),
    "AWS-EFS-002": Example(_EFS, "encrypted", {"encrypted": DROP, "kmsKeyId": _KEY}, {"kmsKeyId": _KEY}),
    "AWS-EFS-003": Example(
        _EFS,
        "performanceMode",
        {"availabilityZoneName": "us-east-1a", "performanceMode": "maxIO"},
        {"performanceMode": "maxIO"},
    ),
    "AWS-EFS-004": Example(
        _EFS,
        "lifecyclePolicies[0]",
        {"lifecyclePolicies": [{"transitionToIa": "AFTER_30_DAYS", "transitionToArchive": "AFTER_90_DAYS"}]},
        {
            "lifecyclePolicies": [
                {"transitionToIa": "AFTER_30_DAYS"},
                {"transitionToArchive": "AFTER_90_DAYS"},
            ]
        },
    ),
    "AWS-EFS-005": Example(_TARGET, "subnetId", {"subnetId": "$a2"}),
    "AWS-EFS-006": Example(
        _TARGET, "subnetId", {"fileSystemId": "$one_zone", "subnetId": "$a"}, {"fileSystemId": "$one_zone"}
    ),
    "AWS-EFS-007": Example(
        _TARGET, "securityGroups[0]", {"securityGroups": ["$other_group"]}, {"securityGroups": ["$efa"]}
    ),
    "AWS-S3-001": Example("s3/bucket:Bucket", "bucket", {"bucket": "My_Bucket"}),
    "AWS-S3-002": Example("s3/bucket:Bucket", "bucket", {"bucket": "xn--bucket"}),
    "AWS-S3-003": Example("s3/directoryBucket:DirectoryBucket", "bucket", {"bucket": "fast"}),
    "AWS-S3-004": Example(
        "s3/bucketVersioning:BucketVersioning",
        "versioningConfiguration.status",
        {"versioningConfiguration": {"status": "Disabled"}},
        {"versioningConfiguration": {"status": "Suspended"}},
        as_="versioned",
    ),
    "AWS-S3-005": Example(
        _ENCRYPTION,
        "rules[0].applyServerSideEncryptionByDefault.kmsMasterKeyId",
        {"rules[0].applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256", "kmsMasterKeyId": "k"}},
        {"rules[0].applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": "k"}},
    ),
    "AWS-S3-006": Example(
        "s3/bucketPolicy:BucketPolicy",
        "policy",
        {"policy": policy(Principal="*", Resource="arn:aws:s3:::other/*")},
        {
            "policy": policy(
                Principal="*",
                Resource=[
                    "arn:aws:s3:::example-*",
                    "arn:aws:s3:::$bucket/*",
                    "arn:aws:s3express:us-east-1:123456789012:bucket/$bucket",
                ],
            )
        },
    ),
    "AWS-S3-007": Example(
        "s3/bucketPolicy:BucketPolicy",
        "policy",
        {"bucket": "$fresh", "policy": policy(Principal="*", Resource="arn:aws:s3:::$fresh/*")},
        {
            "bucket": "$fresh",
            "policy": policy(Principal={"AWS": "123456789012"}, Resource="arn:aws:s3:::$fresh/*"),
        },
    ),
    "AWS-S3-008": Example("s3/bucketAcl:BucketAcl", "acl", {"bucket": "$fresh"}),
    "AWS-S3-009": Example(
        "s3/bucketPolicy:BucketPolicy",
        "policy",
        {"policy": policy(Principal="*", Resource="arn:aws:s3:::$bucket")},
        {"policy": policy(Principal="*", Resource=["arn:aws:s3:::$bucket", "arn:aws:s3:::$bucket/*"])},
    ),
    "AWS-S3-010": Example(
        _LIFECYCLE,
        "rules[1].id",
        {"rules[1]": {"id": "old", "status": "Enabled", "expiration": {"days": 1}}},
        {"rules[1]": {"id": "new", "status": "Enabled", "expiration": {"days": 1}}},
    ),
    "AWS-S3-011": Example(_LIFECYCLE, "rules[0]", {"rules[0].expiration": DROP}),
    "AWS-S3-012": Example(
        _LIFECYCLE,
        "rules[0].expiration.days",
        {"rules[0].expiration": {"days": 1, "expiredObjectDeleteMarker": True}},
        {"rules[0].expiration": {"expiredObjectDeleteMarker": True}},
    ),
    "AWS-S3-013": Example(
        _LIFECYCLE,
        "rules[0].filter",
        {"rules[0].filter": {"prefix": "a/", "objectSizeLessThan": 10}},
        {"rules[0].filter": {"and": {"prefix": "a/", "objectSizeLessThan": 10}}},
    ),
    "AWS-S3-014": Example(
        _LIFECYCLE,
        "rules[0].transitions",
        {**_EXPRESS, "rules[0].transitions": [{"days": 29, "storageClass": "GLACIER"}]},
        {"rules[0].transitions": [{"days": 29, "storageClass": "GLACIER"}]},
    ),
    "AWS-S3-015": Example(
        _LIFECYCLE,
        "rules[0].filter.tag",
        {**_EXPRESS, "rules[0].filter": {"tag": {"key": "k", "value": "v"}}},
        {"rules[0].filter": {"tag": {"key": "k", "value": "v"}}},
    ),
    "AWS-RDS-001": Example(
        _CLUSTER,
        "masterPassword",
        {"masterPassword": "correct-horse"},
        {"masterPassword": "correct-horse", "manageMasterUserPassword": DROP},
    ),
    "AWS-RDS-002": Example(_CLUSTER, "manageMasterUserPassword", {"manageMasterUserPassword": DROP}),
    "AWS-RDS-003": Example(
        _CLUSTER, "storageEncrypted", {"kmsKeyId": _KEY}, {"kmsKeyId": _KEY, "storageEncrypted": True}
    ),
    "AWS-RDS-005": Example(
        _CLUSTER, f"{_SCALING}.minCapacity", {f"{_SCALING}.minCapacity": 0.3}, {f"{_SCALING}.minCapacity": 0}
    ),
    "AWS-RDS-006": Example(_CLUSTER, f"{_SCALING}.maxCapacity", {f"{_SCALING}.minCapacity": 8}),
    "AWS-RDS-007": Example(
        _CLUSTER, "engineMode", {"engineMode": "serverless"}, {"engineMode": "provisioned"}
    ),
    "AWS-RDS-008": Example(
        _CLUSTER,
        "enabledCloudwatchLogsExports[0]",
        {"enabledCloudwatchLogsExports": ["audit"]},
        {"enabledCloudwatchLogsExports": ["postgresql"]},
    ),
    "AWS-RDS-009": Example(
        _INSTANCE, "monitoringRoleArn", {"monitoringInterval": 60}, {"monitoringInterval": 0}
    ),
    "AWS-RDS-010": Example(
        _CLUSTER,
        "performanceInsightsRetentionPeriod",
        {"databaseInsightsMode": "advanced", "performanceInsightsEnabled": True},
        {
            "databaseInsightsMode": "advanced",
            "performanceInsightsEnabled": True,
            "performanceInsightsRetentionPeriod": 465,
        },
    ),
    "AWS-RDS-020": Example("rds/subnetGroup:SubnetGroup", "subnetIds", {"subnetIds": ["$a", "$a2"]}),
    "AWS-RDS-021": Example("rds/subnetGroup:SubnetGroup", "subnetIds", {"subnetIds": ["$a", "$other_b"]}),
    "AWS-RDS-022": Example(_INSTANCE, "engine", {"engine": "aurora-mysql"}),
    "AWS-RDS-023": Example(_INSTANCE, "engineVersion", {"engineVersion": "15.10"}, {"engineVersion": "16.6"}),
    "AWS-RDS-043": Example(
        "rds/instance:Instance",
        "allocatedStorage",
        {"allocatedStorage": 20},
        {"allocatedStorage": 20, "maxAllocatedStorage": 100},
        as_="stored",
    ),
    "AWS-RDS-024": Example(
        _INSTANCE,
        "instanceClass",
        {"clusterIdentifier": "$fixed"},
        {"clusterIdentifier": "$fixed", "instanceClass": "db.r6g.large"},
    ),
}
