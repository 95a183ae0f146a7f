"""Resources of recorded states, created in the emulation by service."""

from collections.abc import Mapping

from moto.iam.models import AWSManagedPolicy, iam_backends

from tests.policies.sources.live.remade.account import ACCOUNT, Maker, Props, Remade, created
from tests.policies.sources.live.remade.modelled import reported


def _attachment(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """Also of a policy of AWS: to have them all would take the emulation a second."""
    path, _, name = one["policyArn"].rpartition(":policy")[2].rpartition("/")
    if ":iam::aws:" in one["policyArn"]:
        day = "2026-11-23T00:00:00+00:00"
        given = {"Path": f"{path}/", "Document": {}, "CreateDate": day, "UpdateDate": day}
        iam = iam_backends[ACCOUNT]["aws"]
        if one["policyArn"] not in iam.managed_policies:
            iam.aws_managed_policies.append(AWSManagedPolicy.from_data(name, ACCOUNT, "us-east-1", given))
            iam.managed_policies[one["policyArn"]] = iam.aws_managed_policies[-1]
    remade.call("iam.AttachRolePolicy", one, names={"RoleName": "role"})
    return ""


def _policy(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    return created("iam.CreatePolicy", "Policy.Arn", {"PolicyName": "name", "PolicyDocument": "policy"})(
        remade, one, tags
    )


def _key(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    made = created("kms.CreateKey", "KeyMetadata.KeyId")(remade, one, tags)
    if one.get("enableKeyRotation"):
        remade.call("kms.EnableKeyRotation", {}, KeyId=made)
    return made


def _lustre(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    own = reported("fsx", "CreateFileSystemLustreConfiguration", one)
    given = {"FileSystemType": "LUSTRE", "LustreConfiguration": own}
    return created("fsx.CreateFileSystem", "FileSystem.FileSystemId", **given)(remade, one, tags)


def _budget(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """With notifications; the emulation does not store their subscribers."""
    budget = reported("budgets", "Budget", one, {"BudgetName": "name"})
    budget["BudgetLimit"] = {"Amount": str(one["limitAmount"]), "Unit": one["limitUnit"]}
    budget["CostFilters"] = {row["name"]: row["values"] for row in one.get("costFilters") or ()}
    remade.call("budgets.CreateBudget", {}, AccountId=ACCOUNT, Budget=budget)
    kinds = (("subscriberEmailAddresses", "EMAIL"), ("subscriberSnsTopicArns", "SNS"))
    for note in one.get("notifications") or ():
        given = {
            "BudgetName": one["name"],
            "Notification": reported("budgets", "Notification", note),
            "Subscribers": [
                {"SubscriptionType": kind, "Address": address}
                for name, kind in kinds
                for address in note.get(name) or ()
            ],
        }
        remade.call("budgets.CreateNotification", {}, AccountId=ACCOUNT, **given)
        remade.rows.setdefault("subscribers", []).append((given, {}))
    return ""


def _log_group(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    remade.call("logs.CreateLogGroup", one, tags, {"logGroupName": "name"})
    if one.get("retentionInDays"):
        remade.call("logs.PutRetentionPolicy", one, names={"logGroupName": "name"})
    return ""


def _alarm(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    dimensions = [{"Name": name, "Value": value} for name, value in (one.get("dimensions") or {}).items()]
    own = {name: value for name, value in one.items() if name not in ("dimensions", "metricQueries")}
    names = {"AlarmName": "name", "OKActions": "okActions"}
    remade.call("cloudwatch.PutMetricAlarm", own, tags, names, Dimensions=dimensions)
    return ""


def _access_key(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    made = remade.call("iam.CreateAccessKey", one, names={"UserName": "user"})
    return str(made["AccessKey"]["AccessKeyId"])


def _secret(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """Its ARN ends in letters that the service chooses."""
    made = str(remade.call("secretsmanager.CreateSecret", one, tags)["ARN"])
    remade.ids[one["$id"].rpartition(":")[2]] = made.rpartition(":")[2]
    return made


_RDS = {
    "DBClusterIdentifier": "clusterIdentifier", "DBInstanceIdentifier": "identifier",
    "DBInstanceClass": "instanceClass", "DBSubnetGroupName": "dbSubnetGroupName",
    "DatabaseName": "databaseName",
    "DBClusterParameterGroupName": "dbClusterParameterGroupName",
}  # fmt: skip


def _subnet_group(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    names = {"DBSubnetGroupName": "name", "DBSubnetGroupDescription": "description"}
    remade.call("rds.CreateDBSubnetGroup", {"description": "Managed by Pulumi", **one}, tags, names)
    return ""


MAKERS: Mapping[str, Maker] = {
    "aws:budgets/budget:Budget": _budget,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:cloudwatch/metricAlarm:MetricAlarm": _alarm,
    "aws:ecr/repository:Repository": created("ecr.CreateRepository", names={"repositoryName": "name"}),
    "aws:efs/accessPoint:AccessPoint": created("efs.CreateAccessPoint", "AccessPointId"),
    "aws:efs/fileSystem:FileSystem": created("efs.CreateFileSystem", "FileSystemId"),
    "aws:efs/mountTarget:MountTarget": created("efs.CreateMountTarget", "MountTargetId"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:iam/accessKey:AccessKey": _access_key,
    "aws:iam/policy:Policy": _policy,
    "aws:iam/role:Role": created(
        "iam.CreateRole", names={"RoleName": "name", "AssumeRolePolicyDocument": "assumeRolePolicy"}
    ),
    "aws:iam/rolePolicy:RolePolicy": created(
        "iam.PutRolePolicy", names={"RoleName": "role", "PolicyName": "name", "PolicyDocument": "policy"}
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _attachment,
    "aws:iam/user:User": created("iam.CreateUser", names={"UserName": "name"}),
    "aws:kms/key:Key": _key,
    "aws:rds/cluster:Cluster": created("rds.CreateDBCluster", names=_RDS),
    "aws:rds/clusterInstance:ClusterInstance": created("rds.CreateDBInstance", names=_RDS),
    "aws:rds/subnetGroup:SubnetGroup": _subnet_group,
    "aws:secretsmanager/secret:Secret": _secret,
}
