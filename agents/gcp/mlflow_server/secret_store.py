"""Secret Manager and database tokens for the tracking pods; runs beside `serve.py` in the server's image.

Implements `SecretStore` of `agents.mlflow_server.serve` and `Tokens` of `libpq` beside it, with the
standard library: the metadata server of the node hands out the token of the pod's service account, and the
APIs are asked over REST. As in Google's own tools, variables lead elsewhere: GCE_METADATA_HOST (as in its
libraries), and CLOUDSDK_API_ENDPOINT_OVERRIDES_<API> (as in gcloud) for SECRETMANAGER and IAMCREDENTIALS.
"""

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

_ENDPOINTS = {
    "secretmanager": "https://secretmanager.googleapis.com/",
    "iamcredentials": "https://iamcredentials.googleapis.com/",
}
_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
# All that a login needs (Cloud SQL documentation, "Log in using IAM database authentication").
_LOGIN_SCOPE = "https://www.googleapis.com/auth/sqlservice.login"
_LIFETIME_S = 3600
# A token of the pod is used until this long before its end; the metadata server has a new one by then.
_MARGIN_S = 240.0
_REQUEST_S = 20.0
# A right takes minutes to be known everywhere ("Access change propagation", IAM documentation), and the
# metadata server of a node answers a new pod some seconds late. Only at the start: later, an error is one.
PATIENCE_S = 240.0
_PAUSE_S = 5.0
_LATER = (403, 408, 429, 500, 502, 503, 504)

# The version whose value counts. All versions but the first have a number that depends on who was faster.
FIRST = "1"


class RefusedError(OSError):
    """An API said no; `status` is its HTTP status, 0 where there was no answer."""

    def __init__(self, what: str, status: int, said: str) -> None:
        super().__init__(f"{what}: {f'status {status}: ' if status else ''}{said}")
        self.status = status


class SecretManager:
    """Secrets by resource name (`projects/P/secrets/S`), and tokens by which databases know an account.

    Version 1 of a secret counts as long as it is enabled, and then the latest. Secret Manager cannot add a
    version on the condition that there is none, so replicas that start together may all add one. But only one
    of theirs is number 1, and a version that was just added is seen by its number at once, and as `latest`
    some time later (Secret Manager documentation, "Resource consistency"). So all of them use the same value.
    To replace a password, add a version and disable version 1.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._metadata = f"http://{environment.get('GCE_METADATA_HOST') or 'metadata.google.internal'}"
        self._endpoints = {
            api: (environment.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}") or usual).rstrip("/")
            for api, usual in _ENDPOINTS.items()
        }
        self._clock, self._pause = clock, pause
        self._patient_until = clock() + PATIENCE_S
        self._pod_token, self._pod_token_until = "", float("-inf")

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        """The fields and the version of the value that counts; None while there is none.

        Raises RefusedError where the value cannot be read.
        """
        try:
            return self._access(secret, FIRST)
        except RefusedError as error:
            if error.status == 404:  # no version was ever added
                return None
            if error.status != 400:  # FAILED_PRECONDITION: it is disabled or destroyed
                raise
        return self._access(secret, "latest")

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        """Store the first value; False when another replica stored one, which is the latest then, too."""
        if self._add(secret, fields) == FIRST:
            return True
        self._add(secret, self._access(secret, FIRST)[0])
        return False

    def token(self, identity: str) -> str:
        """A token by which Cloud SQL knows the service account `identity` (an email address), for an hour."""
        body = {"scope": [_LOGIN_SCOPE], "lifetime": f"{_LIFETIME_S}s"}
        path = f"v1/projects/-/serviceAccounts/{identity}:generateAccessToken"
        return str(self._ask("iamcredentials", path, body)["accessToken"])

    def _add(self, secret: str, fields: Mapping[str, str]) -> str:
        """The number of a new version."""
        data = base64.b64encode(json.dumps(dict(fields)).encode()).decode()
        made = self._ask("secretmanager", f"v1/{secret}:addVersion", {"payload": {"data": data}})
        return str(made["name"]).rpartition("/")[2]

    def _access(self, secret: str, version: str) -> tuple[dict[str, str], str]:
        found = self._ask("secretmanager", f"v1/{secret}/versions/{version}:access")
        return json.loads(base64.b64decode(found["payload"]["data"])), str(found["name"])

    def _ask(self, api: str, path: str, body: Mapping[str, object] | None = None) -> Mapping[str, Any]:
        """The answer of an API, asked again for some minutes after the start."""
        while True:
            try:
                headers = {"Authorization": f"Bearer {self._own_token()}"}
                return _fetch(f"{self._endpoints[api]}/{path}", headers, body)
            except RefusedError as error:
                if error.status and error.status not in _LATER:
                    raise
                if self._clock() + _PAUSE_S > self._patient_until:
                    raise
            self._pause(_PAUSE_S)

    def _own_token(self) -> str:
        """The token of the pod's service account."""
        now = self._clock()
        if now >= self._pod_token_until:
            found = _fetch(f"{self._metadata}/{_TOKEN}", {"Metadata-Flavor": "Google"})
            self._pod_token = str(found["access_token"])
            self._pod_token_until = now + float(found["expires_in"]) - _MARGIN_S
        return self._pod_token


def _fetch(
    url: str, headers: Mapping[str, str], body: Mapping[str, object] | None = None
) -> Mapping[str, Any]:
    """The JSON at an address, POSTed to with a body. Raises RefusedError; what it says holds no secret."""
    data = None if body is None else json.dumps(body).encode()
    sent = {**headers, "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, sent)  # noqa: S310 - addresses of this program
    try:
        with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:  # noqa: S310
            found: Mapping[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        raise RefusedError(url, error.code, error.read(2000).decode(errors="replace")) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RefusedError(url, 0, f"{type(error).__name__}: {error}") from error


def connect(environment: Mapping[str, str]) -> SecretManager:
    """The store, with the rights of this pod."""
    return SecretManager(environment)
