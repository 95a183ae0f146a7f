"""Tracking: a database that only its clients reach, no secret as a value, a role with least rights."""

import json
from typing import Any, cast

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
import pytest

from components.aws.tracking.server import AwsTracking, AwsTrackingArgs
from tests.components.recorder import ACCOUNT, REGION, Recorder, deploy, rules, statements

CLUSTER = "aws:rds/cluster:Cluster"
MASTER = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!cluster-1"
MASTER_SECRET = {"secretArn": MASTER, "secretStatus": "active"}
KEY = "arn:aws:kms:eu-central-1:111122223333:key/storage"
EKS = "arn:aws:eks:eu-central-1:111122223333:cluster/dev-aws"
DEFAULTS = {
    "region": REGION,
    "cluster_name": "dev-aws",
    "cluster_arn": EKS,
    "vpc_id": "vpc-1",
    "subnet_ids": ["subnet-a", "subnet-b"],
    "client_security_group_ids": ["sg-cluster"],
    "artifact_bucket": "artifacts-1",
    "artifact_bucket_arn": "arn:aws:s3:::artifacts-1",
    "kms_key_arn": KEY,
    "image": "registry.example/mlflow@sha256:0",
    "replicas": 2,
    "workers": 2,
    "min_acu": 0.5,
    "max_acu": 4.0,
    "log_retention_days": 30,
}


def made(**changes: Any) -> tuple[Recorder, dict[str, Any]]:
    def program() -> dict[str, pulumi.Output[Any]]:
        tracking = AwsTracking("dev-aws", cast(AwsTrackingArgs, DEFAULTS | changes))
        return {"url": tracking.url, "admin": tracking.admin_secret_arn, "artifacts": tracking.artifact_uri}

    return deploy(
        program,
        {
            CLUSTER: lambda args: {
                "endpoint": f"{args.name}.cluster-abc.eu-central-1.rds.amazonaws.com",
                "masterUserSecrets": [MASTER_SECRET],
            }
        },
    )


def environment(cloud: Recorder) -> dict[str, Any]:
    deployment = cloud.one("kubernetes:apps/v1:Deployment").properties
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def test_database_is_serverless_encrypted_and_its_password_belongs_to_rds() -> None:
    cloud, _ = made()
    cluster = cloud.one(CLUSTER).properties
    assert (cluster["engine"], cluster["engineMode"]) == ("aurora-postgresql", "provisioned")
    assert cluster["serverlessv2ScalingConfiguration"] == {"minCapacity": 0.5, "maxCapacity": 4}
    assert (cluster["storageEncrypted"], cluster["kmsKeyId"]) == (True, KEY)
    assert (cluster["manageMasterUserPassword"], cluster["masterUserSecretKmsKeyId"]) == (True, KEY)
    assert "masterPassword" not in cluster
    assert cluster["backupRetentionPeriod"] == 7
    writer = cloud.one("aws:rds/clusterInstance:ClusterInstance").properties
    assert (writer["instanceClass"], writer["publiclyAccessible"]) == ("db.serverless", False)
    group = cloud.one("aws:rds/clusterParameterGroup:ClusterParameterGroup").properties
    assert {p["name"]: p["value"] for p in group["parameters"]} == {"rds.force_ssl": "1"}
    assert group["family"] == "aurora-postgresql" + cluster["engineVersion"]


def test_log_group_is_the_one_rds_will_write_to_and_expires() -> None:
    cloud, _ = made()
    cluster = cloud.one(CLUSTER).properties
    group = cloud.one("aws:cloudwatch/logGroup:LogGroup").properties
    (exported,) = cluster["enabledCloudwatchLogsExports"]
    assert group["name"] == f"/aws/rds/cluster/{cluster['clusterIdentifier']}/{exported}"
    assert group["retentionInDays"] == 30


def test_database_that_may_pause_is_let_to() -> None:
    cloud, _ = made(min_acu=0.0)
    scaling = cloud.one(CLUSTER).properties["serverlessv2ScalingConfiguration"]
    assert scaling["minCapacity"] == 0
    assert 300 <= scaling["secondsUntilAutoPause"] <= 86_400
    # An idle pooled connection would keep it awake forever.
    assert environment(cloud)["MLFLOW_SQLALCHEMYSTORE_POOLCLASS"] == "NullPool"
    assert "MLFLOW_SQLALCHEMYSTORE_POOLCLASS" not in environment(made()[0])


@pytest.mark.parametrize(("min_acu", "insights"), [(0.0, False), (0.5, False), (2.0, True)])
def test_performance_insights_only_where_there_is_memory_for_it(min_acu: float, insights: bool) -> None:
    writer = made(min_acu=min_acu)[0].one("aws:rds/clusterInstance:ClusterInstance").properties
    assert writer["performanceInsightsEnabled"] is insights
    assert (writer.get("performanceInsightsKmsKeyId") == KEY) is insights


def test_deleting_is_refused_unless_variables_otherwise() -> None:
    cloud, _ = made()
    kept = cloud.one(CLUSTER).properties
    assert (kept["deletionProtection"], kept["skipFinalSnapshot"]) == (True, False)
    # Named after the subnets, whose automatic name is another one in the next life of the stack.
    assert kept["finalSnapshotIdentifier"] == "dev-aws-mlflow-last-subnets"
    assert cloud.one("aws:secretsmanager/secret:Secret").properties["recoveryWindowInDays"] == 30
    cloud, _ = made(deletion_protection=False)
    ended = cloud.one(CLUSTER).properties
    # A database that may be deleted leaves its snapshot: protection is switched off before every destroy.
    assert (ended["deletionProtection"], ended["skipFinalSnapshot"]) == (False, False)
    given_up = made(deletion_protection=False, last_snapshot=False)[0].one(CLUSTER).properties
    assert given_up["skipFinalSnapshot"] is True and "finalSnapshotIdentifier" not in given_up
    assert cloud.one("aws:secretsmanager/secret:Secret").properties["recoveryWindowInDays"] == 0


def test_only_the_nodes_reach_the_database_and_only_its_port() -> None:
    cloud, _ = made(client_security_group_ids=["sg-cluster", "sg-other"])
    group = cloud.one("aws:ec2/securityGroup:SecurityGroup").name + "-id"
    into = {(group, client, "tcp", 5432, 5432) for client in ("sg-cluster", "sg-other")}
    assert set(rules(cloud, "Ingress")) == into
    assert set(rules(cloud, "Egress")) == {(client, group, *rest) for group, client, *rest in into}
    assert cloud.one(CLUSTER).properties["vpcSecurityGroupIds"] == [group]


def actions(policy: str, resource: str) -> set[str]:
    return {
        action
        for statement in json.loads(policy)["Statement"]
        if resource in statement["Resource"]
        for action in statement["Action"]
    }


def test_role_is_for_one_service_account_of_one_cluster() -> None:
    cloud, _ = made()
    trust = json.loads(cloud.one("aws:iam/role:Role", "mlflow-role").properties["assumeRolePolicy"])[
        "Statement"
    ][0]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {
        "aws:RequestTag/eks-cluster-arn": EKS,
        "aws:RequestTag/kubernetes-namespace": "mlflow",
        "aws:RequestTag/kubernetes-service-account": "mlflow",
    }
    association = cloud.one(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation", "mlflow-identity"
    ).properties
    account = cloud.one("kubernetes:core/v1:ServiceAccount", "server-account").properties["metadata"]
    assert (association["namespace"], association["serviceAccount"]) == ("mlflow", account["name"])
    assert association["clusterName"] == "dev-aws"


def test_the_server_reads_its_databases_secret_alone_and_never_deletes_artifacts() -> None:
    cloud, outputs = made()
    policy = cloud.one("aws:iam/rolePolicy:RolePolicy", "mlflow-rights").properties["policy"]
    assert actions(policy, MASTER) == {"secretsmanager:GetSecretValue"}
    assert actions(policy, outputs["admin"]) == set()
    objects = actions(policy, "arn:aws:s3:::artifacts-1/mlflow/*")
    assert {"s3:GetObject", "s3:PutObject"} <= objects
    everything = json.loads(policy)["Statement"]
    assert not any("Delete" in action or "*" in action for s in everything for action in s["Action"])
    assert not any(resource == "*" for s in everything for resource in s["Resource"])
    (key,) = [s for s in everything if KEY in s["Resource"]]
    assert key["Condition"]["StringEquals"]["kms:ViaService"] == [
        "s3.eu-central-1.amazonaws.com",
        "secretsmanager.eu-central-1.amazonaws.com",
    ]


def test_the_job_of_the_tables_fills_one_secret_and_takes_snapshots_that_it_cannot_delete() -> None:
    cloud, outputs = made()
    policy = cloud.one("aws:iam/rolePolicy:RolePolicy", "schema-rights").properties["policy"]
    assert actions(policy, MASTER) == {"secretsmanager:GetSecretValue"}
    assert actions(policy, outputs["admin"]) == {
        "secretsmanager:GetSecretValue",
        "secretsmanager:PutSecretValue",
    }
    everything = json.loads(policy)["Statement"]
    databases = {action for s in everything for action in s["Action"] if action.startswith("rds:")}
    assert databases == {
        "rds:AddTagsToResource", "rds:CreateDBClusterSnapshot", "rds:DescribeDBClusterSnapshots",
    }  # fmt: skip
    assert not any(resource == "*" or "s3" in resource for s in everything for resource in s["Resource"])
    association = cloud.one("aws:eks/podIdentityAssociation:PodIdentityAssociation", "schema-identity")
    place = (association.properties["namespace"], association.properties["serviceAccount"])
    assert place == ("trainstack-schema", "schema")


def test_no_secret_is_ever_asked_for_as_a_value() -> None:
    cloud, _ = made()
    types = cloud.types()
    assert "aws:secretsmanager/secretVersion:SecretVersion" not in types
    assert "kubernetes:core/v1:Secret" not in types
    assert environment(cloud)["DATABASE_URI"].startswith("postgresql+psycopg2://mlflow@")


def test_server_knows_its_database_its_secrets_and_its_bucket() -> None:
    cloud, outputs = made()
    variables = environment(cloud)
    endpoint = "dev-aws-mlflow.cluster-abc.eu-central-1.rds.amazonaws.com"
    assert variables["DATABASE_URI"].endswith(f"@{endpoint}:5432/mlflow?sslmode=require")
    assert variables["DATABASE_SECRET"] == MASTER
    assert outputs["admin"] not in variables.values()
    assert variables["AWS_REGION"] == REGION
    assert variables["ARTIFACTS_DESTINATION"] == outputs["artifacts"] == "s3://artifacts-1/mlflow"
    assert outputs["url"] == "http://mlflow.mlflow.svc.cluster.local:5000"


def test_another_namespace_moves_everything() -> None:
    cloud, outputs = made(namespace="tracking")
    association = cloud.one(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation", "mlflow-identity"
    ).properties
    assert association["namespace"] == "tracking"
    assert (
        '"aws:RequestTag/kubernetes-namespace": "tracking"'
        in (cloud.one("aws:iam/role:Role", "mlflow-role").properties["assumeRolePolicy"])
    )
    assert outputs["url"] == "http://mlflow.tracking.svc.cluster.local:5000"


def test_log_key_serves_only_the_database_log_of_this_account() -> None:
    cloud, _ = made()
    key = statements(cloud.one("aws:kms/key:Key").properties["policy"])["CloudWatchLogsEncryptsThisGroup"]
    covered = key["Condition"]["ArnEquals"]["kms:EncryptionContext:aws:logs:arn"]
    group = cloud.one("aws:cloudwatch/logGroup:LogGroup").properties["name"]
    assert covered == f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}"


def test_children_use_the_providers_of_their_cloud() -> None:
    def program() -> dict[str, pulumi.Output[Any]]:
        providers: list[pulumi.ProviderResource] = [
            aws.Provider("account", region=REGION),
            k8s.Provider("cluster", kubeconfig="{}"),
        ]
        tracking = AwsTracking(
            "dev-aws", cast(AwsTrackingArgs, DEFAULTS), pulumi.ResourceOptions(providers=providers)
        )
        return {"url": tracking.url}

    cloud, _ = deploy(program, {CLUSTER: lambda _: {"endpoint": "db", "masterUserSecrets": [MASTER_SECRET]}})
    used = {
        (asked.type.split(":")[0], asked.provider.split("::")[-2])
        for asked in cloud.asked
        if asked.provider and not asked.type.startswith("pulumi:providers:")
    }
    assert used == {("aws", "account"), ("kubernetes", "cluster")}


def test_what_makes_users_reads_the_first_one_and_nothing_else() -> None:
    cloud, outputs = made()
    policy = cloud.one("aws:iam/rolePolicy:RolePolicy", "logins-rights").properties["policy"]
    assert actions(policy, outputs["admin"]) == {"secretsmanager:GetSecretValue"}
    assert {resource for s in json.loads(policy)["Statement"] for resource in s["Resource"]} == {
        outputs["admin"],
        KEY,
    }
    association = cloud.one("aws:eks/podIdentityAssociation:PodIdentityAssociation", "logins-identity")
    place = (association.properties["namespace"], association.properties["serviceAccount"])
    assert place == ("trainstack-logins", "logins")
