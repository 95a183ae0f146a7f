"""The dispatcher's own login from AWS to a worker on Google Cloud, against the emulated STS and GKE."""

import datetime
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.clusters import logins
from agents.clusters.renewing import login
from agents.clusters.workers import Worker
from components.gcp.cluster.federated_login import MAPPING, condition, pool_name, provider_id, session_role
from rehearsal.core.model import RefusalError
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH
from rehearsal.kubernetes.clusters import GKE_CLUSTER
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from tests.rehearsal.dataplane.aws.test_eks_logins import ACCOUNT, POD, POD_TRUST, Account
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import NUMBER, PROJECT, cluster
from tests.rehearsal.gcp.pods.test_manager_login import BY_NAME, EMAIL

REGION, POOL = "us-east-1", "manager-112233445566778899001"
NAME = pool_name(NUMBER, POOL)
PROVIDER = f"//{NAME}/providers/{provider_id(ACCOUNT)}"
ROLE = session_role(ACCOUNT, POD.rpartition("/")[2])
# As EKS Pod Identity names sessions, up to the 64 characters of STS.
SESSION = "eks-large-mixed-dispatcher-" + "0" * 37


class Worlds:
    """A worker in a project, and the pod of its manager in an account of AWS."""

    def __init__(self, google: Driver, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.google, self.account = google, Account(google.state)
        self.account.role(POD, POD_TRUST)
        cluster(google, controlPlaneEndpointsConfig=BY_NAME)
        (self.worker,) = google.state.find(type=GKE_CLUSTER)
        google.create("serviceaccount/account:Account", "login", accountId="usc1-manager", project=PROJECT)
        google.create(
            "projects/iAMCustomRole:IAMCustomRole", "role", project=PROJECT, roleId="usc1_manager",
            title="Connect", permissions=["container.clusters.connect"],
        )  # fmt: skip
        google.create(
            "projects/iAMMember:IAMMember", "connects", project=PROJECT,
            role=f"projects/{PROJECT}/roles/usc1_manager", member=f"serviceAccount:{EMAIL}",
        )  # fmt: skip
        self.identities = PodIdentities(google.state)
        self.aws, self.plane = self.identities._aws, self.identities._google
        token = self.aws.identities.token(self.account.association, SESSION, folder)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", self.aws.url + CREDENTIALS_PATH)
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
        for api in ("STS", "IAMCREDENTIALS"):
            monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}", self.plane.url)

    def admits(self, **changes: Any) -> None:
        self.google.create(
            "iam/workloadIdentityPool:WorkloadIdentityPool",
            "pool",
            workloadIdentityPoolId=POOL,
            project=PROJECT,
        )
        given: dict[str, Any] = {
            "aws": {"accountId": ACCOUNT}, "attributeMapping": dict(MAPPING),
            "attributeCondition": condition(ROLE), **changes,
        }  # fmt: skip
        self.google.create(
            "iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", "provider", project=PROJECT,
            workloadIdentityPoolId=POOL, workloadIdentityPoolProviderId=provider_id(ACCOUNT), **given,
        )  # fmt: skip

    def may_use(self, principal: str = f"principalSet://{NAME}/attribute.aws_role/{ROLE}") -> None:
        self.google.create(
            "serviceaccount/iAMMember:IAMMember", "uses",
            serviceAccountId=f"projects/{PROJECT}/serviceAccounts/{EMAIL}",
            role="roles/iam.workloadIdentityUser", member=principal,
        )  # fmt: skip

    def token(self) -> str:
        worker = Worker("usc1", "https://usc1.us-central1.gke.goog", "", "n", "", "", REGION, EMAIL, PROVIDER)
        return login(worker, 3600)

    def exchanged(self, **changes: str) -> str:
        """The error of an exchange with a changed form, empty for none."""
        keys = logins._pod_keys()
        request = logins.identity_request(keys, PROVIDER, REGION, datetime.datetime.now(datetime.UTC))
        form = {
            **logins._EXCHANGE, "audience": PROVIDER,
            "subject_token": urllib.parse.quote(json.dumps(request)), **changes,
        }  # fmt: skip
        body = urllib.parse.urlencode(form).encode()
        try:
            urllib.request.urlopen(f"{self.plane.url}v1/token", body, timeout=10).close()
        except urllib.error.HTTPError as error:
            return str(json.loads(error.read())["error"])
        return ""


@pytest.fixture
def worlds(google: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worlds]:
    found = Worlds(google, tmp_path, monkeypatch)
    yield found
    found.identities.stop()


def test_the_role_of_the_dispatcher_is_the_account_of_the_worker(worlds: Worlds) -> None:
    worlds.admits()
    worlds.may_use()
    assert worlds.identities.user(worlds.worker, worlds.token()) == {"username": EMAIL}


@pytest.mark.parametrize(
    "changes",
    [
        {"aws": {"accountId": "210987654321"}},
        {"attributeCondition": condition(session_role(ACCOUNT, "another"))},
        {"attributeCondition": condition(f"{ROLE}s")},
        {"disabled": True},
        {"attributeMapping": {"google.subject": "assertion.arn + '0000'"}},  # more than 127 bytes
    ],
    ids=str,
)
def test_a_provider_that_does_not_admit_the_role_gives_no_token(
    worlds: Worlds, changes: dict[str, object]
) -> None:
    worlds.admits(**changes)
    worlds.may_use()
    with pytest.raises(OSError, match=r"40[01]"):
        worlds.token()


def test_without_a_pool_or_a_grant_there_is_no_token(worlds: Worlds) -> None:
    with pytest.raises(OSError, match="400"):
        worlds.token()
    worlds.admits()
    with pytest.raises(OSError, match="403"):
        worlds.token()
    worlds.may_use(f"principalSet://{NAME}/attribute.aws_role/{ROLE}s")
    with pytest.raises(OSError, match="403"):
        worlds.token()


def test_a_deleted_pool_keeps_its_id(worlds: Worlds) -> None:
    pool = "iam/workloadIdentityPool:WorkloadIdentityPool"
    given: dict[str, Any] = {"workloadIdentityPoolId": POOL, "project": PROJECT}
    worlds.google.create(pool, "pool", **given)
    worlds.google.delete("pool")
    with pytest.raises(RefusalError, match="already exists"):
        worlds.google.create(pool, "again", **given)
    worlds.google.create(pool, "other", **{**given, "workloadIdentityPoolId": f"{POOL}2"})


def _request(worlds: Worlds, **headers: str) -> str:
    """A subject token whose headers were changed after it was signed."""
    made = logins.identity_request(logins._pod_keys(), PROVIDER, REGION, datetime.datetime.now(datetime.UTC))
    rows: list[dict[str, str]] = made["headers"]  # type: ignore[assignment]
    changed = [{**row, "value": headers.get(row["key"].replace("-", "_"), row["value"])} for row in rows]
    return urllib.parse.quote(json.dumps({**made, "headers": changed}))


def test_a_request_is_accepted_as_it_was_signed_alone(worlds: Worlds) -> None:
    worlds.admits()
    assert worlds.exchanged() == ""
    other = PROVIDER.replace(POOL, "manager-9")
    assert worlds.exchanged(audience=other) == "invalid_target"
    assert (
        worlds.exchanged(subject_token=_request(worlds, x_goog_cloud_target_resource=other))
        == "invalid_grant"
    )
    assert worlds.exchanged(subject_token=_request(worlds, x_amz_date="20200101T000000Z")) == "invalid_grant"
    assert worlds.exchanged(subject_token=_request(worlds, x_amz_security_token="another")) == "invalid_grant"
    assert worlds.exchanged(subject_token=_request(worlds, Authorization="AWS4")) == "invalid_grant"
    assert worlds.exchanged(subject_token="%7B%7D") == "invalid_request"
    assert worlds.exchanged(grant_type="password") == "invalid_request"


def test_an_old_request_is_refused(worlds: Worlds) -> None:
    worlds.admits()
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=16)
    made = logins.identity_request(logins._pod_keys(), PROVIDER, REGION, at)
    assert worlds.exchanged(subject_token=urllib.parse.quote(json.dumps(made))) == "invalid_grant"
