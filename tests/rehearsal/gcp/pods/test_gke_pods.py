"""Pods of a GKE cluster: identity, secrets, buckets and databases, all of it local."""

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.model import InitFailedError, RefusalError
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.jobs import WRITE, bucket, database, run
from tests.rehearsal.gcp.pods.project import MLFLOW, PRINCIPAL, PROJECT, SECRET, secret
from tests.rehearsal.kubernetes.harness import ACCOUNT_KIND, Rehearsed

# What the program of the tracking pods does: a token of the metadata server, and a REST call with it.
SECRETS = """
import base64, json, os, urllib.request

def get(url, headers, body=None):
    data = None if body is None else json.dumps(body).encode()
    return json.loads(urllib.request.urlopen(urllib.request.Request(url, data, headers)).read())

root = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default"
token = get(f"{root}/token", {"Metadata-Flavor": "Google"})["access_token"]
api = os.environ["CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"] + "v1/" + os.environ["SECRET"]
login = {"Authorization": f"Bearer {token}"}
value = base64.b64encode(json.dumps({"username": "admin", "password": "p"}).encode()).decode()
get(f"{api}:addVersion", login, {"payload": {"data": value}})
found = get(f"{api}/versions/latest:access", login)
print("read", base64.b64decode(found["payload"]["data"]).decode())
print(sorted(name for name in os.environ if name.startswith("AWS_")))
"""


def test_a_pod_reads_its_secret_by_its_own_principal(google: Driver, gke: Rehearsed) -> None:
    secret(
        google,
        ("roles/secretmanager.secretAccessor", MLFLOW),
        ("roles/secretmanager.secretVersionAdder", MLFLOW),
    )
    log = run(gke, SECRETS, env={"SECRET": SECRET})
    assert 'read {"username": "admin", "password": "p"}' in log
    assert "['AWS_EC2_METADATA_DISABLED']" in log
    named = f"projects/{PROJECT}/secrets/admin"
    assert Rehearsal(gke.home).secret(named) == {"username": "admin", "password": "p"}


def test_a_pod_without_a_grant_reads_nothing(google: Driver, gke: Rehearsed) -> None:
    secret(google, ("roles/secretmanager.secretAccessor", f"{PRINCIPAL}/subject/ns/mlflow/sa/other"))
    with pytest.raises(InitFailedError):
        run(gke, SECRETS, env={"SECRET": SECRET})
    assert "HTTP Error 403" in next((gke.home / "logs" / "mlflow").glob("j-*.log")).read_text()


def test_what_a_pod_writes_to_a_bucket_lies_on_this_disk(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    run(gke, WRITE, env={"TARGET": "gs://artifacts/runs/1/result.json"})
    home = Rehearsal(gke.home)
    assert home.local_path("gs://artifacts/runs/1/result.json").read_text() == "{}"
    with pytest.raises(RefusalError, match=r"conflict: .*holds runs/1/result\.json"):
        for name in ("artifacts-0", "artifacts"):
            google.delete(name)


@pytest.mark.parametrize(
    ("members", "role"),
    [
        ((), "roles/storage.objectUser"),
        ((f"{PRINCIPAL}/subject/ns/mlflow/sa/other",), "roles/storage.objectUser"),
        ((MLFLOW,), "roles/pubsub.publisher"),
    ],
)
def test_a_pod_without_a_right_on_a_bucket_fails_where_it_uses_it(
    google: Driver, gke: Rehearsed, members: tuple[str, ...], role: str
) -> None:
    bucket(google, "artifacts", *members, role=role)
    with pytest.raises(InitFailedError):
        run(gke, WRITE, env={"TARGET": "gs://artifacts/runs/1/result.json"})
    log = next((gke.home / "logs" / "mlflow").glob("j-*.log")).read_text()
    assert "403-no-permission-storage.objects-on-gs-artifacts" in log
    assert "unused" in run(gke, "print('unused')", "k", env={"TARGET": "gs://artifacts/x"})


def test_a_missing_bucket_is_reported(gke: Rehearsed) -> None:
    with pytest.raises(InitFailedError) as failed:
        run(gke, WRITE, env={"TARGET": "gs://artefacts/x"})
    assert any("'artefacts'" in reason for reason in failed.value.reasons)


def test_the_cloud_sql_address_leads_to_a_local_database(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    address = database(google)["privateIpAddress"]
    uri = f"postgresql+psycopg2://mlflow@{address}:5432/mlflow?sslmode=require"
    log = run(gke, WRITE, env={"TARGET": "gs://artifacts/x", "DATABASE": uri})
    local = gke.home / "databases" / "tracking"
    assert f"sqlite:///{local / 'mlflow.db'}" in log and local.is_dir()
    google.delete("db")
    assert not local.exists()


def test_the_auth_proxy_of_a_pod_leads_to_its_instance(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    connection = database(google)["connectionName"]
    env = {"TARGET": "gs://artifacts/x", "DATABASE": "postgresql://mlflow@127.0.0.1:5432/mlflow"}
    assert "postgresql://mlflow@127.0.0.1" in run(gke, WRITE, "without", env=env)
    proxy = {
        "name": "proxy",
        "image": "gcr.io/cloud-sql-connectors/cloud-sql-proxy:2",
        "args": ["--private-ip", connection],
        "restartPolicy": "Always",
    }
    assert "sqlite:///" in run(gke, WRITE, "with", env=env, initContainers=[proxy])


def test_an_annotation_without_effect_in_iam_is_reported(google: Driver, gke: Rehearsed) -> None:
    google.create("serviceaccount/account:Account", "trainer", accountId="trainer")
    email = f"trainer@{PROJECT}.iam.gserviceaccount.com"
    metadata = {
        "name": "train",
        "namespace": "mlflow",
        "annotations": {"iam.gke.io/gcp-service-account": email},
    }
    gke.create(ACCOUNT_KIND, {"metadata": metadata}, "train")
    (said,) = [text for severity, text in gke.log if severity == "warning"]
    assert "iam.serviceAccounts.getAccessToken" in said and "roles/iam.workloadIdentityUser" in said
