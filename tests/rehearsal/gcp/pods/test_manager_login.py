"""The dispatcher's own login to a worker, against the emulated metadata server, IAM Credentials and GKE."""

from collections.abc import Iterator

import pytest

from agents.clusters import logins
from agents.clusters.renewing import login
from agents.clusters.workers import Worker
from components.gcp.pod_account import pod_principal
from rehearsal.core.model import Record
from rehearsal.dataplane.gcp.identity import identity_of
from rehearsal.kubernetes.clusters import GKE_CLUSTER
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import NUMBER, PROJECT, cluster

EMAIL = f"usc1-manager@{PROJECT}.iam.gserviceaccount.com"
DISPATCHER = pod_principal(PROJECT, NUMBER, "trainstack-dispatch", "dispatcher")
BY_NAME = {
    "dnsEndpointConfig": {"allowExternalTraffic": True},
    "ipEndpointsConfig": {"enabled": False},
}


class Worlds:
    """A worker with the account of its manager's login, and the pods of the manager."""

    def __init__(self, google: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster(google, controlPlaneEndpointsConfig=BY_NAME)
        (self.worker,) = google.state.find(type=GKE_CLUSTER)
        google.create("serviceaccount/account:Account", "login", accountId="usc1-manager", project=PROJECT)
        self.google, self._environment = google, monkeypatch
        self.identities = PodIdentities(google.state)

    def may_use(self, principal: str) -> None:
        self.google.create(
            "serviceaccount/iAMMember:IAMMember", "uses",
            serviceAccountId=f"projects/{PROJECT}/serviceAccounts/{EMAIL}",
            role="roles/iam.workloadIdentityUser", member=principal,
        )  # fmt: skip

    def may_connect(self, *permissions: str) -> None:
        self.google.create(
            "projects/iAMCustomRole:IAMCustomRole", "role", project=PROJECT, roleId="usc1_manager",
            title="Connect", permissions=list(permissions),
        )  # fmt: skip
        self.google.create(
            "projects/iAMMember:IAMMember", "connects", project=PROJECT,
            role=f"projects/{PROJECT}/roles/usc1_manager",
            member=f"serviceAccount:{EMAIL}",
        )  # fmt: skip

    def as_pod(self, namespace: str = "trainstack-dispatch", account: str = "dispatcher") -> None:
        plane = self.identities._google
        pod = identity_of(self.google.state, self.worker, namespace, account, {})
        self._environment.setenv("GCE_METADATA_HOST", plane.metadata_host(pod))
        self._environment.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", plane.url)

    def token(self) -> str:
        worker = Worker("usc1", "https://usc1.us-central1.gke.goog", "", "n", "", role=EMAIL)
        return login(worker, 3600)

    def user(self, token: str, record: Record | None = None) -> object:
        return self.identities.user(record or self.worker, token)


@pytest.fixture
def worlds(google: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worlds]:
    found = Worlds(google, monkeypatch)
    yield found
    found.identities.stop()


def test_the_dispatcher_is_the_account_of_the_worker(worlds: Worlds) -> None:
    worlds.may_use(DISPATCHER)
    worlds.may_connect("container.clusters.connect")
    worlds.as_pod()
    assert worlds.user(worlds.token()) == {"username": EMAIL}
    # Its own identity is known to no API server.
    assert worlds.user(logins.google_token()) is None


@pytest.mark.parametrize(
    ("namespace", "account"), [("team-vision", "default"), ("trainstack-dispatch", "default")]
)
def test_other_pods_get_no_token_of_the_account(worlds: Worlds, namespace: str, account: str) -> None:
    worlds.may_use(DISPATCHER)
    worlds.as_pod(namespace, account)
    with pytest.raises(OSError, match="403"):
        worlds.token()


def test_a_dispatcher_that_may_not_use_the_account_gets_no_token(worlds: Worlds) -> None:
    worlds.as_pod()
    with pytest.raises(OSError, match="403"):
        worlds.token()


@pytest.mark.parametrize("permissions", [(), ("container.clusters.get", "container.pods.create")])
def test_an_account_that_may_not_connect_does_not_pass_the_endpoint(
    worlds: Worlds, permissions: tuple[str, ...]
) -> None:
    worlds.may_use(DISPATCHER)
    if permissions:
        worlds.may_connect(*permissions)
    worlds.as_pod()
    assert worlds.user(worlds.token()) is None
