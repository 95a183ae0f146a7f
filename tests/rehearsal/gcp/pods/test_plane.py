"""The metadata server and the APIs, called by Google's own library and by plain requests."""

import base64
import importlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rehearsal.dataplane.gcp.iam_bindings import holds
from rehearsal.dataplane.gcp.identity import PodIdentity, identity_of
from rehearsal.dataplane.gcp.pubsub import MESSAGES
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.kubernetes.clusters import GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from rehearsal.workloads.translate import Pod
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import MLFLOW, NUMBER, POOL, PRINCIPAL, PROJECT, SECRET, cluster, secret

ACCESSOR, ADDER = "roles/secretmanager.secretAccessor", "roles/secretmanager.secretVersionAdder"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
DEFAULT = "computeMetadata/v1/instance/service-accounts/default"


@pytest.fixture
def plane(google: Driver) -> Iterator[GooglePlane]:
    found = GooglePlane(google.state)
    yield found
    found.stop()


def pod(google: Driver, account: str = "mlflow", annotation: str = "") -> PodIdentity:
    found = google.state.find(type="gcp:container/cluster:Cluster")[0]
    named = {"iam.gke.io/gcp-service-account": annotation}
    return identity_of(google.state, found, "mlflow", account, named)


def get(url: str, headers: Mapping[str, str], body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, dict(headers)), timeout=10) as answer:
        text = answer.read().decode()
    return json.loads(text) if answer.headers["Content-Type"].startswith("application/json") else text


def metadata(plane: GooglePlane, identity: PodIdentity, path: str) -> Any:
    return get(f"http://{plane.metadata_host(identity)}/{path}", {"Metadata-Flavor": "Google"})


def ask(plane: GooglePlane, identity: PodIdentity, path: str, body: Any = None) -> Any:
    """An API's response to a pod."""
    token = metadata(plane, identity, f"{DEFAULT}/token")["access_token"]
    return get(f"{plane.url}v1/{path}", {"Authorization": f"Bearer {token}"}, body)


def refused(plane: GooglePlane, identity: PodIdentity, path: str, body: Any = None) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(plane, identity, path, body)
    body = error.value.read().decode()
    return error.value.code, json.loads(body)["error"]["message"] if body.startswith("{") else body


def payload(text: str) -> dict[str, Any]:
    return {"payload": {"data": base64.b64encode(text.encode()).decode()}}


def test_the_metadata_server_speaks_to_googles_own_library(
    google: Driver, plane: GooglePlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster(google)
    host = plane.metadata_host(pod(google))
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, host)
    monkeypatch.delenv("NO_GCE_CHECK", raising=False)
    library: Any = importlib.reload(importlib.import_module("google.auth.compute_engine._metadata"))
    transport: Any = importlib.import_module("google.auth.transport.requests")
    request = transport.Request()
    assert library.ping(request)
    assert library.get_project_id(request) == PROJECT
    info = library.get_service_account_info(request)
    assert info["email"] == POOL and info["aliases"] == ["default"]
    token, _ = library.get_service_account_token(request)
    assert plane.identities.caller(f"Bearer {token}").name == MLFLOW  # type: ignore[union-attr]


def test_the_token_of_a_pods_service_account_is_its_user_in_a_cluster(google: Driver) -> None:
    cluster(google)
    (record,) = google.state.find(type=GKE_CLUSTER)
    identities = PodIdentities(google.state)
    try:
        place = KubeCluster(google.state, record)
        pods = {account: Pod("mlflow", account, account, "127.64.0.9", {"serviceAccountName": account})
                for account in ("mlflow", "trainer")}  # fmt: skip
        annotated = {"metadata": {"annotations": {"iam.gke.io/gcp-service-account": TRAINER}}}
        google.state.insert(
            package="kubernetes", type="kubernetes:core/v1:ServiceAccount", scope=place.scope,
            id="mlflow/trainer", urn="", name="trainer", inputs=annotated,
            outputs={"metadata": {"name": "trainer", "namespace": "mlflow"}},
        )  # fmt: skip
        google.create("serviceaccount/account:Account", "trainer", accountId="trainer", project=PROJECT)
        member = f"serviceAccount:{PROJECT}.svc.id.goog[mlflow/trainer]"
        google.create(
            "serviceaccount/iAMMember:IAMMember", "bound",
            serviceAccountId=f"projects/{PROJECT}/serviceAccounts/{TRAINER}",
            role="roles/iam.workloadIdentityUser", member=member,
        )  # fmt: skip
        found = {}
        for account, one in pods.items():
            host = identities.environment(place, one, google.state.path.parent)["GCE_METADATA_HOST"]
            token = get(f"http://{host}/{DEFAULT}/token", {"Metadata-Flavor": "Google"})["access_token"]
            found[account] = identities.user(record, token)
        # A principal of Workload Identity Federation is no service account: its name is not known here.
        assert found == {"mlflow": None, "trainer": {"username": TRAINER}}
        assert identities.user(record, "ya29.forged") is None
    finally:
        identities.stop()


def test_requests_without_the_metadata_header_are_refused(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    assert metadata(plane, pod(google), "computeMetadata/v1/project/numeric-project-id") == NUMBER
    with pytest.raises(urllib.error.HTTPError) as error:
        get(f"http://{plane.metadata_host(pod(google))}/{DEFAULT}/email", {})
    assert error.value.code == 403


def test_a_secret_is_added_and_read_by_the_direct_principal(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    secret(google, (ACCESSOR, MLFLOW), (ADDER, MLFLOW))
    one = pod(google)
    code, said = refused(plane, one, f"{SECRET}/versions/latest:access")
    assert (code, said) == (404, f"Secret [{SECRET}] not found or has no versions.")
    for number, value in enumerate(("123456789", "second"), start=1):
        made = ask(plane, one, f"projects/{PROJECT}/secrets/admin:addVersion", payload(value))
        assert made["name"] == f"{SECRET}/versions/{number}" and made["state"] == "ENABLED"
    found = ask(plane, one, f"{SECRET}/versions/latest:access")
    assert base64.b64decode(found["payload"]["data"]) == b"second"
    assert ask(plane, one, f"{SECRET}/versions/1:access")["payload"] == {
        "data": base64.b64encode(b"123456789").decode(),
        "dataCrc32c": str(0xE3069283),
    }
    assert refused(plane, one, f"{SECRET}/versions/7:access")[0] == 404
    assert refused(plane, one, f"{SECRET}:addVersion", {"payload": {"data": "&"}})[0] == 400


def test_the_values_go_with_their_secret(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    for _ in range(2):
        secret(google, (ACCESSOR, MLFLOW), (ADDER, MLFLOW))
        assert ask(plane, pod(google), f"{SECRET}:addVersion", payload("x"))["name"].endswith("/1")
        for name in ("grant-0", "grant-1", "admin"):
            google.delete(name)


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        ((ACCESSOR, MLFLOW), True),
        ((ACCESSOR, f"{PRINCIPAL.replace('principal:', 'principalSet:')}/namespace/mlflow"), True),
        ((ACCESSOR, f"serviceAccount:{POOL}[mlflow/mlflow]"), True),
        ((ACCESSOR, f"{PRINCIPAL}/subject/ns/mlflow/sa/other"), False),
        ((ACCESSOR, f"{PRINCIPAL}/subject/ns/other/sa/mlflow"), False),
        ((ACCESSOR, MLFLOW.replace(NUMBER, PROJECT)), False),  # the id where the number belongs
        (("roles/secretmanager.viewer", MLFLOW), False),
        (("roles/editor", MLFLOW), False),
    ],
)
def test_only_the_right_member_and_role_read(
    google: Driver, plane: GooglePlane, grant: tuple[str, str], allowed: bool
) -> None:
    cluster(google)
    secret(google, grant)
    google.create(
        "secretmanager/secretVersion:SecretVersion",
        "v",
        secret=f"projects/{PROJECT}/secrets/admin",
        secretData="s",
    )
    path = f"{SECRET}/versions/latest:access"
    if allowed:
        assert base64.b64decode(ask(plane, pod(google), path)["payload"]["data"]) == b"s"
    else:
        code, said = refused(plane, pod(google), path)
        assert code == 403
        assert said == (
            f"Permission 'secretmanager.versions.access' denied for resource '{SECRET}/versions/latest' "
            "(or it may not exist)."
        )


def test_a_binding_of_the_project_counts_and_its_condition_too(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    secret(google)
    add: dict[str, Any] = {"project": PROJECT, "role": ADDER, "member": MLFLOW}
    elsewhere = f'resource.name.startsWith("projects/{NUMBER}/secrets/other")'
    google.create(
        "projects/iAMMember:IAMMember", "m", **add, condition={"title": "t", "expression": elsewhere}
    )
    assert refused(plane, pod(google), f"{SECRET}:addVersion", payload("x"))[0] == 403
    google.delete("m")
    here = elsewhere.replace("other", "admin")
    google.create("projects/iAMMember:IAMMember", "m", **add, condition={"title": "t", "expression": here})
    ask(plane, pod(google), f"{SECRET}:addVersion", payload("x"))


@pytest.mark.parametrize(
    ("expression", "holding"),
    [
        ('resource.name == "a/b"', True),
        ('resource.name.startsWith("a/") && resource.name == "a/b"', True),
        ('resource.name == "x" || resource.name.startsWith("a")', True),
        ('resource.name.startsWith("b")', False),
        ('request.time < timestamp("2030-01-01T00:00:00Z")', False),  # not evaluated
        ("", False),
    ],
)
def test_conditions(expression: str, holding: bool) -> None:
    assert holds({"expression": expression}, "a/b") is holding
    assert holds(None, "a/b")


def test_a_google_account_needs_the_workload_identity_role(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    google.create("serviceaccount/account:Account", "trainer", accountId="trainer")
    secret(google, (ADDER, f"serviceAccount:{TRAINER}"))
    asking = pod(google, annotation=TRAINER)
    assert metadata(plane, asking, f"{DEFAULT}/email") == TRAINER
    code, said = refused(plane, asking, f"{SECRET}:addVersion", payload("x"))
    assert code == 403 and "Unable to generate access token; IAM returned 403 Forbidden" in said
    assert "iam.serviceAccounts.getAccessToken" in said
    google.create(
        "serviceaccount/iAMMember:IAMMember",
        "wi",
        serviceAccountId=f"projects/{PROJECT}/serviceAccounts/{TRAINER}",
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{POOL}[mlflow/mlflow]",
    )
    ask(plane, asking, f"{SECRET}:addVersion", payload("x"))
    stranger = pod(google, "stranger", annotation=TRAINER)
    assert refused(plane, stranger, f"{SECRET}:addVersion", payload("x"))[0] == 403


def test_a_direct_principal_asks_for_a_token_of_an_account(google: Driver, plane: GooglePlane) -> None:
    """As for logins to Cloud SQL, which know service accounts only."""
    cluster(google)
    google.create("serviceaccount/account:Account", "db", accountId="trainer")
    path = f"projects/-/serviceAccounts/{TRAINER}:generateAccessToken"
    scope = {"scope": ["https://www.googleapis.com/auth/sqlservice.login"], "lifetime": "3600s"}
    code, said = refused(plane, pod(google), path, scope)
    assert code == 403 and said.startswith("Permission 'iam.serviceAccounts.getAccessToken' denied")
    google.create(
        "serviceaccount/iAMMember:IAMMember",
        "tokens",
        serviceAccountId=f"projects/{PROJECT}/serviceAccounts/{TRAINER}",
        role="roles/iam.serviceAccountTokenCreator",
        member=MLFLOW,
    )
    token = ask(plane, pod(google), path, scope)["accessToken"]
    assert plane.identities.caller(f"Bearer {token}").name == TRAINER  # type: ignore[union-attr]


def test_without_a_workload_pool_pods_are_their_node(google: Driver, plane: GooglePlane) -> None:
    cluster(google, workloadIdentityConfig=None)
    one = pod(google)
    assert one.email == f"{NUMBER}-compute@developer.gserviceaccount.com"
    assert MLFLOW not in one.members


def test_publishing_needs_a_right_to_the_topic(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    topic = f"projects/{PROJECT}/topics/alerts"
    google.create("pubsub/topic:Topic", "alerts", name="alerts")
    body = {"messages": [{"data": base64.b64encode(b"slow").decode()}]}
    assert refused(plane, pod(google), f"{topic}:publish", body)[0] == 403
    google.create(
        "pubsub/topicIAMMember:TopicIAMMember",
        "g",
        topic="alerts",
        role="roles/pubsub.publisher",
        member=MLFLOW,
    )
    assert ask(plane, pod(google), f"{topic}:publish", body) == {"messageIds": ["1"]}
    assert google.state.document(MESSAGES, topic) == body["messages"]


def test_unknown_tokens_and_methods(google: Driver, plane: GooglePlane) -> None:
    cluster(google)
    with pytest.raises(urllib.error.HTTPError) as error:
        get(f"{plane.url}v1/{SECRET}", {"Authorization": "Bearer ya29.stolen"})
    assert error.value.code == 401
    code, said = refused(plane, pod(google), f"projects/{PROJECT}/secrets")
    assert code == 404 and "is not emulated" in said
