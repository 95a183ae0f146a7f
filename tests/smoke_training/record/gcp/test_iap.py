"""Logins at a tracking server behind Identity-Aware Proxy: what is signed, and when anew."""

import json
from typing import Any

import pytest

from smoke_training.names import IAP
from smoke_training.record import mlflow
from smoke_training.record.gcp.api import IapLogin
from smoke_training.record.mlflow import TrackingError
from tests.smoke_training.record.google_cloud import ACCOUNT, Answer, serving

SERVER = "https://mlflow-0123456789-uc.a.run.app"
API = "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS"


def test_a_token_is_for_one_address_and_an_hour_and_is_new_before_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []

    def sign(path: str, body: bytes) -> Answer:
        assert path == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:signJwt"
        asked.append(json.loads(json.loads(body)["payload"]))
        return 200, {"keyId": "k", "signedJwt": f"token-{len(asked)}"}

    now = 1_000_000.0
    with serving(monkeypatch, API, sign):
        login = IapLogin(f"{SERVER}/", clock=lambda: now)
        assert login.header() == {"Authorization": "Bearer token-1"}
        now += 3600 - 301
        assert login.header() == {"Authorization": "Bearer token-1"}
        now += 2
        assert login.header() == {"Authorization": "Bearer token-2"}
    assert asked[0] == {
        "iss": ACCOUNT, "sub": ACCOUNT, "aud": f"{SERVER}/*", "iat": 1_000_000, "exp": 1_003_600,
    }  # fmt: skip
    assert asked[1]["exp"] - asked[1]["iat"] == 3600


def test_an_account_that_may_not_sign_says_so_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"MLFLOW_TRACKING_URI": SERVER, "MLFLOW_TRACKING_AUTH": IAP}
    denied = {"error": {"message": "Permission 'iam.serviceAccounts.signJwt' denied on resource"}}
    with serving(monkeypatch, API, lambda _, __: (403, denied)):
        tracking = mlflow.connect(known, 10)
        with pytest.raises(TrackingError, match=r"status 403.*signJwt' denied"):
            tracking.existing_experiment("vision")
