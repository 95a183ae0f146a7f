"""Requests to Google Cloud from a pod or a machine there, with the permissions of its service account.

Standard library only: training images seldom have Google's. GCE_METADATA_HOST overrides the server, as in
Google's own tools. Times are in seconds, for one attempt.
"""

import base64
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from smoke_training.names import IAP

ATTEMPTS, PAUSE_S = 2, 1.0
# Of a service that is busy, beside 5xx (Cloud Storage documentation, "Retry strategy").
_BUSY = (408, 429)
WAKING_S = 60.0
"""Timeout for a server scaled to zero: MLflow on Cloud Run starts in about 20."""
_ACCOUNT = "computeMetadata/v1/instance/service-accounts/default"
_SIGNED_S, _EARLY_S, _SIGN_S = 3600, 300, 10.0


def sleeps(environment: Mapping[str, str]) -> bool:
    """Report whether the tracking server is on Cloud Run behind the proxy, where it scales to zero."""
    return environment.get("MLFLOW_TRACKING_AUTH") == IAP


def authorization(seconds: float) -> Mapping[str, str]:
    """Return the header of a request with this pod's permissions.

    Raises OSError, and ValueError or KeyError for a malformed response.
    """
    return {"Authorization": f"Bearer {_metadata('token', seconds)['access_token']}"}


class IapLogin:
    """Login of a program to a service of Cloud Run behind Identity-Aware Proxy.

    The service account signs a token for itself, for an hour and all paths of the service's own address
    (`status.url`). It needs `iam.serviceAccounts.signJwt` on itself and `roles/iap.httpsResourceAccessor` on
    the service. Source: IAP documentation, "Programmatic authentication"; signJwt. *Untested.*
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.time) -> None:
        self._audience, self._clock = f"{address.rstrip('/')}/*", clock
        self._token, self._until = "", 0.0
        self._lock = threading.Lock()

    def header(self) -> Mapping[str, str]:
        """Return the header of a request, with a token that is valid for minutes at least.

        Raises OSError, and ValueError or KeyError for a malformed response.
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
        self._token = str(request(address, headers, body, _SIGN_S)["signedJwt"])
        self._until = now + _SIGNED_S


def _metadata(what: str, seconds: float) -> Mapping[str, Any]:
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    return request(f"http://{host}/{_ACCOUNT}/{what}", {"Metadata-Flavor": "Google"}, None, seconds)


def request(url: str, headers: Mapping[str, str], body: bytes | None, seconds: float) -> Mapping[str, Any]:
    """Return the response of a server, with one retry if it is busy or silent. Raises OSError."""
    what = url.partition("?")[0]
    for attempt in range(1, ATTEMPTS + 1):
        sent = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - addresses of this program
        try:
            with urllib.request.urlopen(sent, timeout=seconds) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            message = error.read(300).decode(errors="replace")
            if (error.code < 500 and error.code not in _BUSY) or attempt == ATTEMPTS:
                raise OSError(f"{what}: status {error.code}: {message}") from error
        except OSError as error:
            if attempt == ATTEMPTS:
                raise OSError(f"{what}: {error}") from error
        time.sleep(PAUSE_S)
    raise AssertionError("unreachable")


def publish(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to a Pub/Sub topic, by its resource name, with the permissions of the node's service account.

    The variable CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB overrides the address, as in Google's own tools.
    Raises OSError, and ValueError or KeyError for a malformed response.
    """
    api = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB") or "https://pubsub.googleapis.com/"
    patience = seconds / (ATTEMPTS * 2)
    message = {"data": base64.b64encode(text.encode()).decode(), "attributes": {"subject": subject}}
    body = json.dumps({"messages": [message]}).encode()
    headers = {**authorization(patience), "Content-Type": "application/json"}
    request(f"{api.rstrip('/')}/v1/{topic}:publish", headers, body, patience)


def put_object(uri: str, content: bytes, seconds: float) -> None:
    """Write one object, `gs://bucket/key`, with the permissions of the node's service account.

    STORAGE_EMULATOR_HOST overrides the address, as in Google's own tools. Raises OSError, and ValueError or
    KeyError for a malformed response. Source: Cloud Storage JSON API v1, objects.insert.
    """
    api = (os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com").rstrip("/")
    place, patience = urlsplit(uri), seconds / (ATTEMPTS * 2)
    query = urlencode({"uploadType": "media", "name": place.path.lstrip("/")})
    headers = {**authorization(patience), "Content-Type": "application/octet-stream"}
    request(f"{api}/upload/storage/v1/b/{place.netloc}/o?{query}", headers, content, patience)
