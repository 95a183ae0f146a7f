"""Requests to Google Cloud from a pod or a machine there, with the rights of its metadata server.

Standard library alone: training images seldom have Google's. GCE_METADATA_HOST leads elsewhere, as in
Google's own tools. Times are in seconds, for one attempt.
"""

import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from smoke_training.launchers.managed import IAP

ATTEMPTS = 2
WAKING_S = 60.0
"""That a server may take which sleeps while nobody asks: MLflow on Cloud Run starts in some 20."""
_ACCOUNT = "computeMetadata/v1/instance/service-accounts/default"
_SIGNED_S, _EARLY_S, _SIGN_S = 3600, 300, 10.0


def sleeps(environment: Mapping[str, str]) -> bool:
    """Whether the tracking server is one on Cloud Run behind the proxy, which ends while nobody asks."""
    return environment.get("MLFLOW_TRACKING_AUTH") == IAP


def authorization(seconds: float) -> Mapping[str, str]:
    """The header of a request with this pod's rights.

    Raises OSError, and ValueError or KeyError for an answer that is none.
    """
    return {"Authorization": f"Bearer {_metadata('token', seconds)['access_token']}"}


class IapLogin:
    """Lets a program in to a service of Cloud Run behind Identity-Aware Proxy.

    The account as which this runs signs a token for itself, good for an hour and for all paths of one
    address, which has to be the service's own (`status.url`). It needs `iam.serviceAccounts.signJwt` on
    itself and `roles/iap.httpsResourceAccessor` on the service. Source: IAP documentation, "Programmatic
    authentication"; IAM Service Account Credentials API v1, signJwt. *Untested in a real project.*
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.time) -> None:
        self._audience, self._clock = f"{address.rstrip('/')}/*", clock
        self._token, self._until = "", 0.0
        self._lock = threading.Lock()

    def header(self) -> Mapping[str, str]:
        """That of a request, with a token that is good for minutes at least.

        Raises OSError, and ValueError or KeyError for an answer that is none.
        """
        with self._lock:
            if self._clock() > self._until - _EARLY_S:
                self._sign()
            return {"Authorization": f"Bearer {self._token}"}

    def _sign(self) -> None:
        email = str(_metadata("?recursive=true", _SIGN_S)["email"])
        now = int(self._clock())
        claims = {"iss": email, "sub": email, "aud": self._audience, "iat": now, "exp": now + _SIGNED_S}
        api = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", "")
        api = api.rstrip("/") or "https://iamcredentials.googleapis.com"
        address = f"{api}/v1/projects/-/serviceAccounts/{email}:signJwt"
        headers = {**authorization(_SIGN_S), "Content-Type": "application/json"}
        body = json.dumps({"payload": json.dumps(claims)}).encode()
        self._token = str(asked(address, headers, body, _SIGN_S)["signedJwt"])
        self._until = now + _SIGNED_S


def _metadata(what: str, seconds: float) -> Mapping[str, Any]:
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    return asked(f"http://{host}/{_ACCOUNT}/{what}", {"Metadata-Flavor": "Google"}, None, seconds)


def asked(url: str, headers: Mapping[str, str], body: bytes | None, seconds: float) -> Mapping[str, Any]:
    """What a server answers. A busy one, and one that is silent, are asked once more. Raises OSError."""
    for attempt in range(1, ATTEMPTS + 1):
        request = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - addresses of this program
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            said = error.read(300).decode(errors="replace")
            if error.code < 500 or attempt == ATTEMPTS:
                raise OSError(f"status {error.code}: {said}") from error
        except OSError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")
