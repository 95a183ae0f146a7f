"""Databases: RDS and DynamoDB.

Shapes: internal/service/rds/{instance,cluster,cluster_instance}.go, instance_automated_backups_replication.go
and internal/service/dynamodb/{table,global_table}.go of terraform-provider-aws.
"""

from policies.sources.live.mapping import Each, Joined, LiveKind, same
from policies.sources.live.queries import ApiQuery

QUERIES = (
    ApiQuery("rds", "DescribeDBInstances", "DBInstances"),
    ApiQuery("rds", "DescribeDBClusters", "DBClusters"),
    ApiQuery("rds", "DescribeDBInstanceAutomatedBackups", "DBInstanceAutomatedBackups"),
    ApiQuery("dynamodb", "ListTables", "TableNames"),
    ApiQuery("dynamodb", "DescribeTable", "Table", of="dynamodb.ListTables", by={"TableName": "it"}),
    ApiQuery("dynamodb", "ListTagsOfResource", "Tags", of="dynamodb.DescribeTable",
             by={"ResourceArn": "TableArn"}),
    ApiQuery("dynamodb", "ListGlobalTables", "GlobalTables"),
)  # fmt: skip
_GONE = ("deleting", "deleted")
# The API also reports Neptune and DocumentDB, which are types of their own.
_OTHERS = ("neptune", "docdb")


def _instance(kind: str, of_cluster: bool) -> LiveKind:
    own = {
        **same("AllocatedStorage", "BackupRetentionPeriod", "DeletionProtection", "StorageType"),
        "multiAz": "MultiAZ",
        "replicateSourceDb": "ReadReplicaSourceDBInstanceIdentifier",
        "username": "MasterUsername",
    }
    return LiveKind(
        kind,
        "rds.DescribeDBInstances",
        "{DBInstanceIdentifier}",
        {
            **({"clusterIdentifier": "DBClusterIdentifier"} if of_cluster else own),
            "arn": "DBInstanceArn",
            **same("AvailabilityZone", "CopyTagsToSnapshot", "Engine", "KmsKeyId", "PubliclyAccessible"),
            **same("StorageEncrypted"),
            "dbSubnetGroupName": "DBSubnetGroup.DBSubnetGroupName",
            "identifier": "DBInstanceIdentifier",
            "instanceClass": "DBInstanceClass",
        },
        tags="TagList",
        when=lambda view: (
            bool(view.at("DBClusterIdentifier")) is of_cluster
            and view.at("DBInstanceStatus") not in _GONE
            and view.at("Engine") not in _OTHERS
        ),
        program_only=() if of_cluster else ("skipFinalSnapshot", "snapshotIdentifier"),
        keys=("kmsKeyId",),
    )


KINDS = (
    _instance("aws:rds/instance:Instance", of_cluster=False),
    _instance("aws:rds/clusterInstance:ClusterInstance", of_cluster=True),
    LiveKind(
        "aws:rds/cluster:Cluster",
        "rds.DescribeDBClusters",
        "{DBClusterIdentifier}",
        {
            "arn": "DBClusterArn",
            **same("BackupRetentionPeriod", "CopyTagsToSnapshot", "DeletionProtection", "Endpoint"),
            **same("Engine", "EngineMode", "KmsKeyId", "MasterUsername", "Port"),
            **same("ReplicationSourceIdentifier", "StorageEncrypted"),
            "clusterIdentifier": "DBClusterIdentifier",
            "clusterResourceId": "DbClusterResourceId",
            "dbSubnetGroupName": "DBSubnetGroup",
        },
        tags="TagList",
        when=lambda view: view.at("Status") not in _GONE and view.at("Engine") not in _OTHERS,
        program_only=("skipFinalSnapshot", "snapshotIdentifier"),
        keys=("kmsKeyId",),
    ),
    LiveKind(
        "aws:rds/instanceAutomatedBackupsReplication:InstanceAutomatedBackupsReplication",
        "rds.DescribeDBInstanceAutomatedBackups",
        "{DBInstanceAutomatedBackupsArn}",
        {
            "kmsKeyId": "KmsKeyId",
            "retentionPeriod": "BackupRetentionPeriod",
            "sourceDbInstanceArn": "DBInstanceArn",
        },
        # Backups of instances in this region are no copies; those replicated from another region are.
        when=lambda view: view.at("Region") not in (None, view.at("region")),
    ),
    LiveKind(
        "aws:dynamodb/table:Table",
        "dynamodb.DescribeTable",
        "{TableName}",
        {
            "arn": "TableArn",
            "billingMode": "BillingModeSummary.BillingMode",
            "deletionProtectionEnabled": "DeletionProtectionEnabled",
            "hashKey": lambda view: next(
                (one["AttributeName"] for one in view.at("KeySchema") or () if one.get("KeyType") == "HASH"),
                None,
            ),
            "name": "TableName",
            "replicas": Each("Replicas", {"regionName": "RegionName"}),
            "tableClass": "TableClassSummary.TableClass",
        },
        tags="tagging",
        joined={"tagging": Joined("dynamodb.ListTagsOfResource", {"ResourceArn": "TableArn"}, listed=True)},
        when=lambda view: view.at("TableStatus") != "DELETING",
    ),
    LiveKind(
        "aws:dynamodb/globalTable:GlobalTable",
        "dynamodb.ListGlobalTables",
        "{GlobalTableName}",
        {"name": "GlobalTableName", "replicas": Each("ReplicationGroup", {"regionName": "RegionName"})},
    ),
)
