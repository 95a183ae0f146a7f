"""Examples of the rules STO."""

from collections.abc import Mapping
from typing import Any

from tests.policies.recording.bases import AWS_NETWORK, CLUSTER, NODE_GROUP, NODE_ROLE
from tests.policies.recording.example import DROP, Example, Made

_KEY = {"key": Made("aws:kms/key:Key", {"enableKeyRotation": True})}
_BUCKET = {"checkpoints": Made("aws:s3/bucket:Bucket", {"bucket": "example-checkpoints"})}
_GCS = Made(
    "gcp:storage/bucket:Bucket",
    {
        "name": "example-checkpoints",
        "location": "US-CENTRAL1",
        "publicAccessPrevention": "enforced",
        "versioning": {"enabled": True},
        "lifecycleRules": [
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
            {"action": {"type": "Delete"}, "condition": {"age": 30}},
        ],
    },
)


def _with(kind: str, **props: object) -> dict[str, Made]:
    """The bucket, and a setting of it."""
    token = f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}"
    return {**_BUCKET, "setting": Made(token, {"bucket": "$checkpoints", **props})}


def _block(**props: bool) -> dict[str, Made]:
    usual = dict.fromkeys(
        ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True
    )
    return _with("BucketPublicAccessBlock", **{**usual, **props})


def _encrypted(**default: str) -> dict[str, Made]:
    rules = [{"applyServerSideEncryptionByDefault": default}]
    return {**_KEY, **_with("BucketServerSideEncryptionConfiguration", rules=rules)}


def _lifecycle(*rules: Mapping[str, Any]) -> dict[str, Made]:
    on = [{"id": f"rule-{number}", "status": "Enabled", **rule} for number, rule in enumerate(rules)]
    return _with("BucketLifecycleConfiguration", rules=on)


_ABORT = {"abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}, "filter": {}}
_EXPIRE = {"expiration": {"days": 30}, "filter": {"prefix": "runs/"}}


def _lustre(**props: object) -> dict[str, Made]:
    usual = {"subnetIds": "$a", "storageCapacity": 1200, "deploymentType": "PERSISTENT_2"}
    made = {**usual, "perUnitStorageThroughput": 125, **props}
    kept = {name: value for name, value in made.items() if value is not DROP}
    return {**AWS_NETWORK, **_KEY, "lustre": Made("aws:fsx/lustreFileSystem:LustreFileSystem", kept)}


_SCRATCH = {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": DROP}
_LINK = Made(
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    {"fileSystemId": "$lustre", "fileSystemPath": "/data", "dataRepositoryPath": "s3://example-checkpoints"},
    after=["checkpoints"],
)


def _homes(status: str) -> dict[str, Made]:
    return {
        "homes": Made("aws:efs/fileSystem:FileSystem", {"encrypted": True}),
        "backup": Made(
            "aws:efs/backupPolicy:BackupPolicy",
            {"fileSystemId": "$homes", "backupPolicy": {"status": status}},
        ),
        "team": Made(
            "aws:efs/accessPoint:AccessPoint",
            {
                "fileSystemId": "$homes",
                "posixUser": {"uid": 1000, "gid": 1000},
                "rootDirectory": {
                    "path": "/team",
                    "creationInfo": {"ownerUid": 1000, "ownerGid": 1000, "permissions": "0770"},
                },
            },
        ),
    }


def _template(encrypted: str) -> dict[str, Made]:
    disk = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 50, "volumeType": "gp3", "encrypted": encrypted}}
    return {"nodes": Made("aws:ec2/launchTemplate:LaunchTemplate", {"blockDeviceMappings": [disk]})}


def _database(**props: object) -> dict[str, Made]:
    usual = {"engine": "aurora-postgresql", "masterUsername": "mlflow", "manageMasterUserPassword": True}
    return {
        **AWS_NETWORK,
        "subnets": Made("aws:rds/subnetGroup:SubnetGroup", {"subnetIds": ["$a", "$b"]}),
        "database": Made("aws:rds/cluster:Cluster", {**usual, "dbSubnetGroupName": "$subnets.name", **props}),
    }


def _pool(subnet: str) -> dict[str, Made]:
    """A pool of GPUs in a subnet, and a file system in the zone a."""
    machines = {"instanceTypes": ["p5.48xlarge"], "amiType": "AL2023_x86_64_NVIDIA"}
    pool = NODE_GROUP.but(subnetIds=[subnet], **machines)
    return {**CLUSTER, **NODE_ROLE, **_lustre(), "pool": pool}


EXAMPLES = {
    "MLS-STO-01": Example(_block(), _block(blockPublicPolicy=False), at="setting", path="blockPublicPolicy"),
    "MLS-STO-01.gcs": Example(
        {"checkpoints": _GCS},
        {"checkpoints": _GCS.but(publicAccessPrevention="inherited")},
        at="checkpoints",
        path="publicAccessPrevention",
    ),
    "MLS-STO-02": Example(
        _encrypted(sseAlgorithm="aws:kms", kmsMasterKeyId="$key.arn"),
        _encrypted(sseAlgorithm="aws:kms"),
        at="setting",
        path="rules[0].applyServerSideEncryptionByDefault.kmsMasterKeyId",
    ),
    "MLS-STO-02.gcs": Example(
        {
            "ring": Made("gcp:kms/keyRing:KeyRing", {"name": "ring", "location": "us-central1"}),
            "key": Made("gcp:kms/cryptoKey:CryptoKey", {"name": "data", "keyRing": "$ring"}),
            "checkpoints": _GCS.but(encryption={"defaultKmsKeyName": "$key"}),
        },
        {"checkpoints": _GCS},
        at="checkpoints",
        path="encryption.defaultKmsKeyName",
    ),
    "MLS-STO-03": Example(
        _with("BucketVersioning", versioningConfiguration={"status": "Enabled"}),
        _with("BucketVersioning", versioningConfiguration={"status": "Suspended"}),
        at="checkpoints",
        path="versioning",
    ),
    "MLS-STO-03.gcs": Example(
        {"checkpoints": _GCS},
        {"checkpoints": _GCS.but(versioning={"enabled": False})},
        at="checkpoints",
        path="versioning",
    ),
    "MLS-STO-04": Example(
        _lifecycle(_ABORT, _EXPIRE), _lifecycle(_ABORT), at="checkpoints", path="lifecycleRules"
    ),
    "MLS-STO-04.gcs": Example(
        {"checkpoints": _GCS},
        {"checkpoints": _GCS.but(lifecycleRules=_GCS.props["lifecycleRules"][1:])},
        at="checkpoints",
        path="lifecycleRules",
    ),
    "MLS-STO-05": Example(_lustre(kmsKeyId="$key.arn"), _lustre(), at="lustre", path="kmsKeyId"),
    "MLS-STO-06": Example(
        {**_BUCKET, **_lustre(**_SCRATCH), "link": _LINK}, _lustre(**_SCRATCH), at="lustre"
    ),
    "MLS-STO-07": Example(
        _lustre(automaticBackupRetentionDays=7, copyTagsToBackups=True),
        _lustre(automaticBackupRetentionDays=7),
        at="lustre",
        path="copyTagsToBackups",
    ),
    "MLS-STO-08": Example(_homes("ENABLED"), _homes("DISABLED"), at="homes"),
    "MLS-STO-09": Example(
        _template("true"), _template("false"), at="nodes", path="blockDeviceMappings[0].ebs.encrypted"
    ),
    "MLS-STO-10": Example(
        _database(deletionProtection=True, finalSnapshotIdentifier="last"),
        _database(finalSnapshotIdentifier="last"),
        at="database",
        path="deletionProtection",
    ),
    "MLS-STO-11": Example(_pool("$a"), _pool("$b"), at="pool", path="subnetIds"),
}
