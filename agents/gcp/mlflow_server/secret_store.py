"""Secret Manager, database tokens and backups for the tracking pods; runs beside `serve` in their image.

Implements `CredentialStore` of `agents.mlflow_server.administrator` and `Tokens` of `libpq` there, and takes
backups for `schema`, with the standard library: the metadata server of the node issues the token of the pod's
service account, and the APIs are called over REST. As in Google's own tools, variables override endpoints:
GCE_METADATA_HOST (as in its libraries), and CLOUDSDK_API_ENDPOINT_OVERRIDES_<API> (as in gcloud) for
SECRETMANAGER, IAMCREDENTIALS and SQL.
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
    "sql": "https://sqladmin.googleapis.com/",
}
_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
# The scope of a login (Cloud SQL documentation, "Log in using IAM database authentication").
_LOGIN_SCOPE = "https://www.googleapis.com/auth/sqlservice.login"
_LIFETIME_S = 3600
# A token of the pod is used until this long before its end; the metadata server has a new one by then.
_MARGIN_S = 240.0
_REQUEST_S = 20.0
# A permission takes minutes to propagate ("Access change propagation", IAM documentation), and the metadata
# server of a node responds to a new pod some seconds late. Errors are retried at the start only, and during a
# backup those of an API that is unavailable for a moment.
PATIENCE_S = 240.0
_PAUSE_S = 5.0
_BRIEFLY = (0, 408, 429, 500, 502, 503, 504)
_LATER = (403, *_BRIEFLY)
# An instance has one operation at a time (Cloud SQL documentation, "operationInProgress").
_OCCUPIED = 409

# A backup of Cloud SQL takes minutes; it grows with what changed since the last.
BACKUP_S, _BACKUP_POLL_S = 1800.0, 10.0
# States of a backup that is not complete (Cloud SQL Admin API, SqlBackupRunStatus).
_UNFINISHED = (None, "SQL_BACKUP_RUN_STATUS_UNSPECIFIED", "ENQUEUED", "OVERDUE", "RUNNING")

# The version whose value is used. The numbers of later versions depend on the order of concurrent writes.
FIRST = "1"


class SecretManagerError(OSError):
    """An API returned an error; `status` is the HTTP status, 0 where there was no response."""

    def __init__(self, what: str, status: int, said: str) -> None:
        super().__init__(f"{what}: {f'status {status}: ' if status else ''}{said}")
        self.status = status


class SecretManagerClient:
    """Secrets by resource name (`projects/P/secrets/S`), and tokens for database logins.

    Version 1 of a secret is used while it is enabled, then the latest. Secret Manager cannot add a version on
    the condition that there is none, so replicas that start together may all add one. Only one of these is
    number 1, and a new version is readable by its number at once, and as `latest` some time later (Secret
    Manager documentation, "Resource consistency"). So all replicas use the same value.
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
        """The fields and the version of the value in use; None while there is none.

        Raises SecretManagerError where the value cannot be read.
        """
        try:
            return self._access(secret, FIRST)
        except SecretManagerError as error:
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
        """An access token for Cloud SQL logins as the account `identity` (an email address), for an hour."""
        body = {"scope": [_LOGIN_SCOPE], "lifetime": f"{_LIFETIME_S}s"}
        path = f"v1/projects/-/serviceAccounts/{identity}:generateAccessToken"
        return str(self._ask("iamcredentials", path, body)["accessToken"])

    def snapshot(self, database: str, name: str) -> str:
        """Back up an instance (`projects/P/instances/I`) and wait until it is complete; returns its name.

        `name` becomes the description. A request without a response may have been received, so the backup is
        looked for before it is asked for again. Raises SecretManagerError where it fails or takes too long.
        """
        asked, end = False, self._clock() + BACKUP_S
        while True:
            found, problem = None, f"no such backup after {BACKUP_S:.0f} s"
            try:
                found = self._backup(database, name)
                if found is None and not asked:
                    self._ask("sql", f"v1/{database}/backupRuns", {"description": name})
                    asked = True
            except SecretManagerError as error:
                if error.status not in (*_BRIEFLY, _OCCUPIED):
                    raise
                problem = str(error)
            status = (found or {}).get("status")
            if found and status == "SUCCESSFUL":
                return f"{database}/backupRuns/{found['id']}"
            if found and status not in _UNFINISHED:
                raise SecretManagerError(f"backup {name} of {database}", 0, json.dumps(found))
            if self._clock() + _BACKUP_POLL_S > end:
                raise SecretManagerError(f"backup {name} of {database}", 0, str(status or problem))
            self._pause(_BACKUP_POLL_S)

    def _backup(self, database: str, name: str) -> Mapping[str, Any] | None:
        """The backup with this description; the last ones are listed first."""
        found = self._ask("sql", f"v1/{database}/backupRuns?maxResults=20")
        return next((one for one in found.get("items", []) if one.get("description") == name), None)

    def _add(self, secret: str, fields: Mapping[str, str]) -> str:
        """The number of a new version."""
        data = base64.b64encode(json.dumps(dict(fields)).encode()).decode()
        made = self._ask("secretmanager", f"v1/{secret}:addVersion", {"payload": {"data": data}})
        return str(made["name"]).rpartition("/")[2]

    def _access(self, secret: str, version: str) -> tuple[dict[str, str], str]:
        found = self._ask("secretmanager", f"v1/{secret}/versions/{version}:access")
        return json.loads(base64.b64decode(found["payload"]["data"])), str(found["name"])

    def _ask(self, api: str, path: str, body: Mapping[str, object] | None = None) -> Mapping[str, Any]:
        """The response of an API; retried for some minutes after the start."""
        while True:
            try:
                headers = {"Authorization": f"Bearer {self._own_token()}"}
                return _fetch(f"{self._endpoints[api]}/{path}", headers, body)
            except SecretManagerError as error:
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
    """The JSON at a URL, POSTed to with a body. Raises SecretManagerError, whose text contains no secret."""
    data = None if body is None else json.dumps(body).encode()
    sent = {**headers, "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, sent)  # noqa: S310 - addresses of this program
    try:
        with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:  # noqa: S310
            found: Mapping[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        raise SecretManagerError(url, error.code, error.read(2000).decode(errors="replace")) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SecretManagerError(url, 0, f"{type(error).__name__}: {error}") from error


def connect(environment: Mapping[str, str]) -> SecretManagerClient:
    """The store, with the permissions of this pod."""
    return SecretManagerClient(environment)
