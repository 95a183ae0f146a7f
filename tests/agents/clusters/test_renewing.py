"""Secrets with the kubeconfigs of workers."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents.clusters.renewing import Renewer, kubeconfig
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServer

EKS = Worker("use1", "https://10.0.0.1", "Q0E=", "trainstack-clusters", "manager", "c", "us-east-1", "arn")
GKE = Worker("usc1", "https://gke-1.us-central1.gke.goog", "", "trainstack-clusters", "", role="a@p.example")


class Server(ApiServer):
    """The manager's API server, which keeps Secrets."""

    def __init__(self) -> None:
        self.secrets: list[dict[str, Any]] = []

    def ask(self, method: str, path: str, body: Any = None, **_: Any) -> tuple[int, dict[str, Any]]:
        assert method == "PATCH"
        text = base64.b64decode(body["data"]["kubeconfig"])
        self.secrets.append({"name": path.rpartition("/")[2], **json.loads(text)})
        return 200, {}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Requests for tokens of accounts, as worker and token of the login."""
    found: list[tuple[str, str]] = []

    def send(self: WorkerApi, _: str, path: str, __: Mapping[str, Any]) -> dict[str, Any]:
        assert path.endswith("/serviceaccounts/manager/token")
        found.append((self.worker.name, self.token))
        return {"status": {"token": "of the account"}}

    monkeypatch.setattr(WorkerApi, "send", send)
    return found


def test_kueue_gets_the_token_of_the_login_where_the_worker_has_no_account(
    requests: list[tuple[str, str]],
) -> None:
    server, asked = Server(), []

    def login(worker: Worker, lasts_s: int) -> str:
        asked.append((worker.name, lasts_s))
        return f"of the login to {worker.name}"

    renewer = Renewer(server, [EKS, GKE], token=login, clock=lambda: 0.0)
    renewer.renew(EKS)
    renewer.renew(GKE)
    assert requests == [("use1", "of the login to use1")]
    assert asked == [("use1", 3600), ("usc1", 3600)]
    tokens = {one["name"]: one["users"][0]["user"]["token"] for one in server.secrets}
    assert tokens == {"use1": "of the account", "usc1": "of the login to usc1"} == renewer.tokens


def test_a_token_is_renewed_after_half_of_its_time(requests: list[tuple[str, str]]) -> None:
    server, now = Server(), [0.0]
    renewer = Renewer(server, [GKE], token=lambda *_: f"at {now[0]}", clock=lambda: now[0])
    for now[0] in (0.0, 1799.0, 1800.0):
        renewer.renew(GKE)
    assert [one["users"][0]["user"]["token"] for one in server.secrets] == ["at 0.0", "at 1800.0"]
    assert requests == []


def test_a_server_with_a_public_certificate_has_no_authority_in_its_kubeconfig() -> None:
    assert _cluster(GKE) == {"server": GKE.server}
    assert _cluster(EKS) == {"server": EKS.server, "certificate-authority-data": "Q0E="}


def _cluster(worker: Worker) -> object:
    config: Any = kubeconfig(worker.server, worker.authority, "t")
    (named,) = config["clusters"]
    return named["cluster"]
