"""Keys, secrets, images and backups. Only names and settings of secrets are read, never values.

Shapes: internal/service/{kms,secretsmanager,ecr,backup} of terraform-provider-aws.
"""

from typing import Any

from policies.resource import UnknownValue
from policies.sources.live.mapping import Each, Joined, LiveKind, One, Shape, View, same
from policies.sources.live.queries import ApiQuery

_KEYS, _KEY = "kms.ListKeys", "kms.DescribeKey"
_OF_PLAN = {"BackupPlanId": "BackupPlanId"}
QUERIES = (
    ApiQuery("kms", "ListKeys", "Keys"),
    ApiQuery("kms", "DescribeKey", "KeyMetadata", of=_KEYS, by={"KeyId": "KeyId"}),
    # Fails for keys that KMS cannot rotate.
    ApiQuery("kms", "GetKeyRotationStatus", of=_KEY, by={"KeyId": "KeyId"},
             unset=("UnsupportedOperationException", "KMSInvalidStateException")),
    ApiQuery("kms", "ListResourceTags", "Tags", of=_KEY, by={"KeyId": "KeyId"}),
    ApiQuery("secretsmanager", "ListSecrets", "SecretList"),
    # Reports replicas and tags, and no value.
    ApiQuery("secretsmanager", "DescribeSecret", of="secretsmanager.ListSecrets", by={"SecretId": "ARN"}),
    ApiQuery("ecr", "DescribeRepositories", "repositories"),
    ApiQuery("ecr", "ListTagsForResource", "tags", of="ecr.DescribeRepositories",
             by={"resourceArn": "repositoryArn"}),
    ApiQuery("ecr", "DescribeRegistry"),
    ApiQuery("ecr", "GetRegistryScanningConfiguration", "scanningConfiguration"),
    ApiQuery("backup", "ListBackupVaults", "BackupVaultList"),
    ApiQuery("backup", "ListBackupPlans", "BackupPlansList"),
    ApiQuery("backup", "GetBackupPlan", of="backup.ListBackupPlans", by=_OF_PLAN),
    ApiQuery("backup", "ListBackupSelections", "BackupSelectionsList", of="backup.ListBackupPlans",
             by=_OF_PLAN),
    ApiQuery("backup", "GetBackupSelection", of="backup.ListBackupSelections",
             by={"BackupPlanId": "asked.BackupPlanId", "SelectionId": "SelectionId"}),
)  # fmt: skip
_LEAVING = ("PendingDeletion", "PendingReplicaDeletion")
_OF_KEY = {"KeyId": "KeyId"}
_COPY: Shape = {
    "destinationVaultArn": "DestinationBackupVaultArn",
    "lifecycle": One("Lifecycle", {"deleteAfter": "DeleteAfterDays"}),
}


def _conditions(view: View) -> Any:
    """Unknown if there are any: no rule reads them."""
    found = view.at("BackupSelection.Conditions") or {}
    return UnknownValue("conditions", "is not read from an account") if any(found.values()) else None


def _key(kind: str, replica: bool, external: bool = False, **more: str) -> LiveKind:
    return LiveKind(
        kind,
        _KEY,
        "{KeyId}",
        {"arn": "Arn", "description": "Description", "keyUsage": "KeyUsage", **more},
        tags="tagging",
        joined={
            "rotation": Joined("kms.GetKeyRotationStatus", _OF_KEY),
            "tagging": Joined("kms.ListResourceTags", _OF_KEY, listed=True),
        },
        when=lambda view: (
            view.at("KeyManager") == "CUSTOMER"
            and view.at("KeyState") not in _LEAVING
            and (view.at("MultiRegionConfiguration.MultiRegionKeyType") == "REPLICA") is replica
            and (view.at("Origin") == "EXTERNAL") is external
        ),
    )


KINDS = (
    _key(
        "aws:kms/key:Key",
        replica=False,
        customerMasterKeySpec="CustomerMasterKeySpec",
        customKeyStoreId="CustomKeyStoreId",
        enableKeyRotation="rotation.KeyRotationEnabled",
        keyId="KeyId",
        isEnabled="Enabled",
        multiRegion="MultiRegion",
    ),
    _key("aws:kms/externalKey:ExternalKey", replica=False, external=True, multiRegion="MultiRegion"),
    _key("aws:kms/replicaKey:ReplicaKey", replica=True, keyId="KeyId", keySpec="CustomerMasterKeySpec"),
    _key("aws:kms/replicaExternalKey:ReplicaExternalKey", replica=True, external=True),
    LiveKind(
        "aws:secretsmanager/secret:Secret",
        "secretsmanager.DescribeSecret",
        "{ARN}",
        {
            "arn": "ARN",
            **same("Description", "KmsKeyId", "Name"),
            "replicas": Each("ReplicationStatus", same("KmsKeyId", "Region")),
        },
        name="{Name}",
        tags="Tags",
        # A secret of a service, such as a database login, is managed and tagged only by that service
        # (Secrets Manager User Guide, secrets managed by other services).
        when=lambda view: not view.at("DeletedDate") and not view.at("OwningService"),
        program_only=("recoveryWindowInDays",),
        keys=("kmsKeyId",),
    ),
    LiveKind(
        "aws:ecr/repository:Repository",
        "ecr.DescribeRepositories",
        "{repositoryName}",
        {
            "arn": "repositoryArn",
            "encryptionConfigurations": lambda view: (
                [
                    {"encryptionType": one.get("encryptionType"), "kmsKey": one.get("kmsKey")}
                    for one in [view.at("encryptionConfiguration") or {}]
                    if one
                ]
                or None
            ),
            "imageScanningConfiguration": One("imageScanningConfiguration", {"scanOnPush": "scanOnPush"}),
            **same("imageTagMutability", "registryId"),
            "name": "repositoryName",
            "repositoryUrl": "repositoryUri",
        },
        tags="tagging",
        joined={"tagging": Joined("ecr.ListTagsForResource", {"resourceArn": "repositoryArn"}, listed=True)},
    ),
    LiveKind(
        "aws:ecr/replicationConfiguration:ReplicationConfiguration",
        "ecr.DescribeRegistry",
        "{registryId}",
        {
            "registryId": "registryId",
            "replicationConfiguration": One(
                "replicationConfiguration",
                {
                    "rules": Each(
                        "rules",
                        {"destinations": Each("destinations", same("region", "registryId"))},
                    )
                },
            ),
        },
        when=lambda view: bool(view.at("replicationConfiguration.rules")),
    ),
    LiveKind(
        "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration",
        "ecr.GetRegistryScanningConfiguration",
        "{account}",
        {
            "scanType": "scanType",
            "rules": Each(
                "rules",
                {
                    "scanFrequency": "scanFrequency",
                    "repositoryFilters": Each("repositoryFilters", same("filter", "filterType")),
                },
            ),
        },
    ),
    LiveKind(
        "aws:backup/vault:Vault",
        "backup.ListBackupVaults",
        "{BackupVaultName}",
        {"arn": "BackupVaultArn", "kmsKeyArn": "EncryptionKeyArn", "name": "BackupVaultName"},
        keys=("kmsKeyArn",),
    ),
    LiveKind(
        "aws:backup/plan:Plan",
        "backup.GetBackupPlan",
        "{BackupPlanId}",
        {
            "arn": "BackupPlanArn",
            "name": "BackupPlan.BackupPlanName",
            "rules": Each(
                "BackupPlan.Rules",
                {
                    "ruleName": "RuleName",
                    "schedule": "ScheduleExpression",
                    "targetVaultName": "TargetBackupVaultName",
                    "copyActions": Each("CopyActions", _COPY),
                },
            ),
            "version": "VersionId",
        },
    ),
    LiveKind(
        "aws:backup/selection:Selection",
        "backup.GetBackupSelection",
        "{SelectionId}",
        {
            "iamRoleArn": "BackupSelection.IamRoleArn",
            "name": "BackupSelection.SelectionName",
            "notResources": "BackupSelection.NotResources",
            "planId": "BackupPlanId",
            "resources": "BackupSelection.Resources",
            "selectionTags": Each(
                "BackupSelection.ListOfTags",
                {"type": "ConditionType", "key": "ConditionKey", "value": "ConditionValue"},
            ),
            "conditions": _conditions,
        },
        imported="{BackupPlanId}|{SelectionId}",
    ),
)
