"""Keys, secrets, images and backups. Of secrets only names and settings are asked, never values.

Shapes: internal/service/{kms,secretsmanager,ecr,backup} of terraform-provider-aws.
"""

from typing import Any

from policies.resource import Unknown
from policies.sources.live.form import Each, Joined, Kind, One, Shape, View
from policies.sources.live.question import Question

_KEYS, _KEY = "kms.ListKeys", "kms.DescribeKey"
_OF_PLAN = {"BackupPlanId": "BackupPlanId"}
QUESTIONS = (
    Question("kms", "ListKeys", "Keys"),
    Question("kms", "DescribeKey", "KeyMetadata", of=_KEYS, by={"KeyId": "KeyId"}),
    # Keys that KMS cannot rotate refuse the question.
    Question("kms", "GetKeyRotationStatus", of=_KEY, by={"KeyId": "KeyId"},
             unset=("UnsupportedOperationException", "KMSInvalidStateException")),
    Question("kms", "ListResourceTags", "Tags", of=_KEY, by={"KeyId": "KeyId"}),
    Question("secretsmanager", "ListSecrets", "SecretList"),
    # Tells replicas and tags, and no value.
    Question("secretsmanager", "DescribeSecret", of="secretsmanager.ListSecrets", by={"SecretId": "ARN"}),
    Question("ecr", "DescribeRepositories", "repositories"),
    Question("ecr", "ListTagsForResource", "tags", of="ecr.DescribeRepositories",
             by={"resourceArn": "repositoryArn"}),
    Question("ecr", "DescribeRegistry"),
    Question("ecr", "GetRegistryScanningConfiguration", "scanningConfiguration"),
    Question("backup", "ListBackupVaults", "BackupVaultList"),
    Question("backup", "ListBackupPlans", "BackupPlansList"),
    Question("backup", "GetBackupPlan", of="backup.ListBackupPlans", by=_OF_PLAN),
    Question("backup", "ListBackupSelections", "BackupSelectionsList", of="backup.ListBackupPlans",
             by=_OF_PLAN),
    Question("backup", "GetBackupSelection", of="backup.ListBackupSelections",
             by={"BackupPlanId": "asked.BackupPlanId", "SelectionId": "SelectionId"}),
)  # fmt: skip
_LEAVING = ("PendingDeletion", "PendingReplicaDeletion")
_OF_KEY = {"KeyId": "KeyId"}
_COPY: Shape = {
    "destinationVaultArn": "DestinationBackupVaultArn",
    "lifecycle": One("Lifecycle", {"deleteAfter": "DeleteAfterDays"}),
}


def _conditions(view: View) -> Any:
    """Unknown where there are any: no rule reads them."""
    found = view.at("BackupSelection.Conditions") or {}
    return Unknown("conditions", "is not read from an account") if any(found.values()) else None


def _key(kind: str, replica: bool, external: bool = False, **more: str) -> Kind:
    return Kind(
        kind,
        _KEY,
        "{KeyId}",
        {
            "arn": "Arn",
            "description": "Description",
            "keyUsage": "KeyUsage",
            **more,
        },
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
    Kind(
        "aws:secretsmanager/secret:Secret",
        "secretsmanager.DescribeSecret",
        "{ARN}",
        {
            "arn": "ARN",
            "description": "Description",
            "kmsKeyId": "KmsKeyId",
            "name": "Name",
            "replicas": Each("ReplicationStatus", {"kmsKeyId": "KmsKeyId", "region": "Region"}),
        },
        name="{Name}",
        tags="Tags",
        # One that a service made, such as the login of a database, is kept and tagged by that service alone
        # (Secrets Manager User Guide, secrets managed by other services).
        when=lambda view: not view.at("DeletedDate") and not view.at("OwningService"),
        untold=("recoveryWindowInDays",),
        keys=("kmsKeyId",),
    ),
    Kind(
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
            "imageTagMutability": "imageTagMutability",
            "name": "repositoryName",
            "registryId": "registryId",
            "repositoryUrl": "repositoryUri",
        },
        tags="tagging",
        joined={"tagging": Joined("ecr.ListTagsForResource", {"resourceArn": "repositoryArn"}, listed=True)},
    ),
    Kind(
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
                        {
                            "destinations": Each(
                                "destinations", {"region": "region", "registryId": "registryId"}
                            )
                        },
                    )
                },
            ),
        },
        when=lambda view: bool(view.at("replicationConfiguration.rules")),
    ),
    Kind(
        "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration",
        "ecr.GetRegistryScanningConfiguration",
        "{account}",
        {
            "scanType": "scanType",
            "rules": Each(
                "rules",
                {
                    "scanFrequency": "scanFrequency",
                    "repositoryFilters": Each(
                        "repositoryFilters", {"filter": "filter", "filterType": "filterType"}
                    ),
                },
            ),
        },
    ),
    Kind(
        "aws:backup/vault:Vault",
        "backup.ListBackupVaults",
        "{BackupVaultName}",
        {"arn": "BackupVaultArn", "kmsKeyArn": "EncryptionKeyArn", "name": "BackupVaultName"},
        keys=("kmsKeyArn",),
    ),
    Kind(
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
    Kind(
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
