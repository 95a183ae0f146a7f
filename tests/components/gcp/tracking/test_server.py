"""Tracking on Google Cloud: a private database without passwords, an empty secret, pods with least rights."""

from typing import Any, cast

import pulumi
import pytest
from sqlalchemy.engine import make_url

from components.gcp.tracking.database import GcpDatabaseArgs, check
from components.gcp.tracking.login import ACCOUNT_LENGTH, database_uri, only_instance
from components.gcp.tracking.server import GcpTracking, GcpTrackingArgs
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from tests.components.graph import Graph, deploy_graph

NUMBER, PROJECT = "123456789012", "dev-project-1"
KEY = f"projects/{PROJECT}/locations/europe-west4/keyRings/r/cryptoKeys/storage"
CA = "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n"
DEFAULTS = {
    "project": PROJECT,
    "project_number": NUMBER,
    "region": "europe-west4",
    "workload_pool": f"{PROJECT}.svc.id.goog",
    "network_id": f"projects/{PROJECT}/global/networks/dev",
    "artifact_bucket": "artifacts-1",
    "key_id": KEY,
    "image": "registry.example/mlflow@sha256:0",
    "replicas": 2,
    "workers": 2,
    "tier": "db-custom-2-7680",
    "availability": "zonal",
    "disk_gib": 20,
}
SERVER = (
    f"principal://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/"
    f"{PROJECT}.svc.id.goog/subject/ns/mlflow/sa/mlflow"
)
LOGINS = SERVER.replace("ns/mlflow/sa/mlflow", "ns/trainstack-logins/sa/logins")
INSTANCE = "gcp:sql/databaseInstance:DatabaseInstance"
ACCOUNT = "gcp:serviceaccount/account:Account"
SECRET = "gcp:secretmanager/secret:Secret"
COMPUTED: Any = {
    INSTANCE: lambda args: {"privateIpAddress": "10.9.0.3", "serverCaCerts": [{"cert": CA}]},
    ACCOUNT: lambda args: {
        "email": f"{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
        "member": f"serviceAccount:{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
    },
    "gcp:projects/serviceIdentity:ServiceIdentity": lambda args: {
        "member": f"serviceAccount:agent-of-{args.inputs['service']}"
    },
}


def made(name: str = "dev-gcp", **changes: Any) -> Graph:
    def program() -> dict[str, pulumi.Output[Any]]:
        tracking = GcpTracking(name, cast(GcpTrackingArgs, DEFAULTS | changes))
        return {
            "url": tracking.url,
            "admin": tracking.admin_secret,
            "artifacts": tracking.artifact_uri,
            "namespace": tracking.namespace,
        }

    return deploy_graph(program, COMPUTED)


def settings(graph: Graph) -> dict[str, Any]:
    found: dict[str, Any] = graph.cloud.one(INSTANCE).properties["settings"]
    return found


def environment(graph: Graph) -> dict[str, Any]:
    deployment = graph.cloud.one("kubernetes:apps/v1:Deployment").properties
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def rights(graph: Graph, member: str) -> set[tuple[str, str]]:
    """(kind of the resource, role) of all permissions of a member."""
    return {
        (asked.type.split(":")[1].split("/")[0], asked.properties["role"])
        for asked in graph.cloud.asked
        if asked.properties.get("member") == member
    }


def test_the_database_is_reached_inside_the_network_alone_and_only_over_tls() -> None:
    network = settings(made())["ipConfiguration"]
    assert network == {
        "ipv4Enabled": False,
        "privateNetwork": DEFAULTS["network_id"],
        "sslMode": "ENCRYPTED_ONLY",
    }


def test_the_edition_is_said_since_another_one_refuses_custom_tiers() -> None:
    graph = made()
    assert graph.cloud.one(INSTANCE).properties["databaseVersion"] == "POSTGRES_17"
    found = settings(graph)
    assert (found["edition"], found["tier"]) == ("ENTERPRISE", "db-custom-2-7680")
    assert found["availabilityType"] == "ZONAL"
    assert settings(made(availability="regional"))["availabilityType"] == "REGIONAL"


def test_the_service_may_use_the_key_before_the_database_is_made_with_it() -> None:
    graph = made()
    assert graph.cloud.one(INSTANCE).properties["encryptionKeyName"] == KEY
    use = "CryptoKeyIAMMember:dev-gcp-mlflow-key-use"
    assert graph.find("kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "dev-gcp-mlflow-key-use") == {
        "cryptoKeyId": KEY,
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
        "member": "serviceAccount:agent-of-sqladmin.googleapis.com",
    }
    assert use in graph.waits_for("DatabaseInstance:dev-gcp-mlflow")
    assert "CryptoKeyIAMMember:dev-gcp-mlflow-admin-key-use" in graph.waits_for("Secret:dev-gcp-mlflow-admin")


def test_a_grown_disk_is_not_shrunk_which_would_replace_the_database() -> None:
    graph = made()
    assert settings(graph)["diskAutoresize"] is True
    assert graph.ignored["DatabaseInstance:dev-gcp-mlflow"] == ["settings.diskSize"]


@pytest.mark.parametrize(("days", "log_days"), [(7, 7), (30, 7), (3, 3)])
def test_every_moment_of_the_last_days_can_be_restored_in_the_region(days: int, log_days: int) -> None:
    backups = settings(made(backup_retention_days=days))["backupConfiguration"]
    assert backups["enabled"] is True and backups["pointInTimeRecoveryEnabled"] is True
    assert backups["transactionLogRetentionDays"] == log_days
    assert backups["backupRetentionSettings"] == {"retainedBackups": days, "retentionUnit": "COUNT"}
    assert backups["location"] == "europe-west4"


def test_deleting_is_refused_at_both_levels_and_what_is_deleted_leaves_a_backup() -> None:
    graph = made()
    instance = graph.cloud.one(INSTANCE).properties
    assert (instance["deletionProtection"], settings(graph)["deletionProtectionEnabled"]) == (True, True)
    assert graph.cloud.one(SECRET).properties["deletionProtection"] is True
    assert settings(graph)["finalBackupConfig"] == {"enabled": True, "retentionDays": 365}
    assert settings(graph)["retainBackupsOnDelete"] is True
    graph = made(deletion_protection=False, last_backup=False)
    instance = graph.cloud.one(INSTANCE).properties
    assert (instance["deletionProtection"], settings(graph)["deletionProtectionEnabled"]) == (False, False)
    assert settings(graph)["finalBackupConfig"] == {"enabled": False}
    assert settings(graph)["retainBackupsOnDelete"] is False and "finalBackupDescription" not in instance


def test_a_destroy_empties_nothing_before_the_last_backup_is_taken() -> None:
    graph = made()
    for kind in ("sql/database:Database", "sql/user:User"):
        assert graph.find(kind)["deletionPolicy"] == "ABANDON"


def test_what_rules_and_policies_know_of_cloud_sql_is_respected() -> None:
    instance = dict(made().cloud.one(INSTANCE).properties)
    assert [*BOOK.broken_alone(INSTANCE, instance)] == []
    instance["settings"] = instance["settings"] | {"edition": "ENTERPRISE_PLUS"}
    assert [rule.id for rule, _ in BOOK.broken_alone(INSTANCE, instance)] == ["GCP-SQL-001"]


def test_the_user_is_a_service_account_whose_one_right_is_to_log_in_to_this_instance() -> None:
    graph = made()
    account = graph.cloud.one(ACCOUNT).properties["accountId"]
    user = graph.find("sql/user:User")
    assert user["type"] == "CLOUD_IAM_SERVICE_ACCOUNT" and "password" not in user
    assert user["name"] == f"{account}@{PROJECT}.iam", "as PostgreSQL knows it"
    # Without it, it could make no table in a database since PostgreSQL 15.
    assert user["databaseRoles"] == ["cloudsqlsuperuser"]
    member = f"serviceAccount:{account}@{PROJECT}.iam.gserviceaccount.com"
    assert rights(graph, member) == {("projects", "roles/cloudsql.instanceUser")}
    login = graph.find("projects/iAMMember:IAMMember", "dev-gcp-mlflow-login")
    assert login["condition"]["expression"] == only_instance(PROJECT, "dev-gcp-mlflow")
    assert {row["name"]: row["value"] for row in settings(graph)["databaseFlags"]}[
        "cloudsql.iam_authentication"
    ] == "on"


def test_pods_are_not_made_into_that_account() -> None:
    """An annotation would do everything in its name, with its rights in place of the pods' own."""
    account = made().cloud.one("kubernetes:core/v1:ServiceAccount", "server-account")
    metadata = account.properties["metadata"]
    assert "annotations" not in metadata


def test_the_server_reads_no_secret_writes_one_folder_and_deletes_nothing() -> None:
    graph = made()
    assert rights(graph, SERVER) == {
        ("serviceaccount", "roles/iam.workloadIdentityUser"),
        ("storage", "roles/storage.objectCreator"),
        ("storage", "roles/storage.objectViewer"),
    }
    folders = graph.all("storage/managedFolderIamMember:ManagedFolderIamMember").values()
    assert {(row["bucket"], row["managedFolder"]) for row in folders} == {("artifacts-1", "mlflow/")}
    # Objects outlive the folder that carries the rights.
    assert graph.find("storage/managedFolder:ManagedFolder")["forceDestroy"] is True


def test_what_makes_users_reads_the_first_one_and_nothing_else() -> None:
    graph = made()
    assert rights(graph, LOGINS) == {("secretmanager", "roles/secretmanager.secretAccessor")}


def test_the_job_of_the_tables_fills_one_secret_and_takes_backups_that_it_cannot_delete() -> None:
    graph = made()
    role = graph.find("projects/iAMCustomRole:IAMCustomRole")
    assert set(role["permissions"]) == {
        "cloudsql.backupRuns.create", "cloudsql.backupRuns.list", "cloudsql.instances.get",
    }  # fmt: skip
    found = rights(graph, SERVER.replace("ns/mlflow/sa/mlflow", "ns/trainstack-schema/sa/schema"))
    assert {kind for kind, _ in found} == {"serviceaccount", "secretmanager", "projects"}
    assert ("secretmanager", "roles/secretmanager.secretVersionAdder") in found


def test_no_secret_is_ever_asked_for_as_a_value_and_it_stays_in_the_region() -> None:
    graph = made()
    assert not {kind for kind in graph.cloud.types() if "secretVersion" in kind or kind.endswith(":Key")}
    assert "kubernetes:core/v1:Secret" not in graph.cloud.types()
    assert "rootPassword" not in graph.cloud.one(INSTANCE).properties
    (replica,) = graph.cloud.one(SECRET).properties["replication"]["userManaged"]["replicas"]
    assert replica == {"location": "europe-west4", "customerManagedEncryption": {"kmsKeyName": KEY}}


def test_the_server_knows_its_database_its_secret_and_its_bucket() -> None:
    graph = made()
    variables = environment(graph)
    account = graph.cloud.one(ACCOUNT).properties["accountId"]
    url = make_url(variables["DATABASE_URI"])
    assert (url.host, url.port, url.database) == ("10.9.0.3", 5432, "mlflow")
    assert (url.username, url.password) == (f"{account}@{PROJECT}.iam", None)
    # It believes no server whose certificate the instance's own authority did not sign.
    assert url.query == {"sslmode": "verify-ca"}
    assert variables["DATABASE_CA"] == CA
    assert variables["DATABASE_IDENTITY"] == f"{account}@{PROJECT}.iam.gserviceaccount.com"
    assert graph.outputs["admin"] == "dev-gcp-mlflow-admin-id"
    assert "dev-gcp-mlflow-admin-id" not in variables.values()
    assert variables["ARTIFACTS_DESTINATION"] == graph.outputs["artifacts"] == "gs://artifacts-1/mlflow"
    assert variables["GOOGLE_CLOUD_PROJECT"] == PROJECT
    assert "DATABASE_SECRET" not in variables
    assert graph.outputs["url"] == "http://mlflow.mlflow.svc.cluster.local:5000"


def test_pods_reach_what_hands_out_rights_which_is_outside_of_what_they_may_reach_by_default() -> None:
    policy = made().cloud.one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "mlflow-server-policy")
    ports = {
        (peer["ipBlock"]["cidr"], port["port"])
        for rule in policy.properties["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
        for port in rule["ports"]
    }
    assert ("169.254.169.254/32", 80) in ports


def test_the_server_starts_after_its_rights_and_its_user() -> None:
    before = made().waits_for("Deployment:dev-gcp-mlflow-server-deployment")
    assert {
        "User:dev-gcp-mlflow-user",
        "IAMMember:dev-gcp-mlflow-login",
        "IAMMember:dev-gcp-mlflow-pods",
        "Database:dev-gcp-mlflow-database",
        "SecretIamMember:dev-gcp-schema-fills",
        "IAMMember:dev-gcp-schema-backups",
        "Job:dev-gcp-mlflow-server-schema-job",
        "ManagedFolderIamMember:dev-gcp-mlflow-artifacts-objectCreator",
    } <= before


def test_another_namespace_moves_everything() -> None:
    graph = made(namespace="tracking")
    assert len(rights(graph, SERVER.replace("ns/mlflow", "ns/tracking"))) == 3
    assert rights(graph, SERVER) == set()
    assert graph.outputs["url"] == "http://mlflow.tracking.svc.cluster.local:5000"


def test_a_long_name_is_still_a_user_of_postgresql() -> None:
    graph = made("a-stack-with-a-name-that-is-long-enough")
    account = graph.cloud.one(ACCOUNT).properties["accountId"]
    assert 6 <= len(account) <= ACCOUNT_LENGTH
    assert len(f"{account}@{'p' * 30}.iam") <= 63


def test_a_user_is_safe_in_a_uri() -> None:
    url = make_url(database_uri("a@b.iam", "10.0.0.3", 5432, "mlflow"))
    assert (url.username, url.host) == ("a@b.iam", "10.0.0.3")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tier": "db-f1-micro"}, "tier: must have the form db-custom"),
        ({"tier": "db-custom-3-7680"}, "or an even number"),
        ({"tier": "db-custom-2-3000"}, "2 processors take 3840 to 13312 MiB"),
        ({"tier": "db-custom-2-32768"}, "2 processors take 3840 to 13312 MiB"),
        ({"disk_gib": 5}, "disk_gib: the disk"),
        ({"backup_retention_days": 0}, "backup_retention_days"),
    ],
)
def test_what_cloud_sql_would_refuse_is_refused_here(changes: dict[str, Any], words: str) -> None:
    good = {
        "region": "europe-west4",
        "network_id": "n",
        "key_id": KEY,
        "tier": "db-custom-2-7680",
        "availability": "zonal",
        "disk_gib": 20,
        "backup_retention_days": 7,
    }
    check(cast(GcpDatabaseArgs, good))
    with pytest.raises(UserError, match=words):
        check(cast(GcpDatabaseArgs, good | changes))


def test_everything_wrong_is_said_at_once() -> None:
    bad = DEFAULTS | {"tier": "db-custom-3-7680", "disk_gib": 5, "backup_retention_days": 0}
    with pytest.raises(UserError) as caught:
        check(cast(GcpDatabaseArgs, bad))
    assert len(caught.value.problems) == 3
