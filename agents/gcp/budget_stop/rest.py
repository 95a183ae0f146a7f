"""Client of Google's APIs over HTTP, with the service account of the function; standard library only.

As in Google's own tools, variables override the endpoints: GCE_METADATA_HOST (as in its libraries), and
CLOUDSDK_API_ENDPOINT_OVERRIDES_<API> (as in gcloud) for AIPLATFORM, NOTEBOOKS and STORAGE.
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

_ENDPOINTS = {
    "aiplatform": "https://{region}-aiplatform.googleapis.com",
    "notebooks": "https://notebooks.googleapis.com",
    "storage": "https://storage.googleapis.com",
}
_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
_REQUEST_S = 30.0


class GoogleApiError(OSError):
    """An API returned an error; `status` is the HTTP status, `said` the body of the response."""

    def __init__(self, what: str, status: int, said: str) -> None:
        super().__init__(f"{what}: status {status}: {said}")
        self.status, self.said = status, said


class GoogleApis:
    """The APIs that the function uses. One object for each call, which is shorter than its token is valid."""

    def __init__(self, environment: Mapping[str, str], region: str) -> None:
        self._metadata = f"http://{environment.get('GCE_METADATA_HOST') or 'metadata.google.internal'}"
        self._endpoints = {
            api: environment.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", "").rstrip("/")
            or usual.format(region=region)
            for api, usual in _ENDPOINTS.items()
        }
        self._token = ""

    def pages(self, api: str, path: str, key: str, **query: str) -> Iterator[Mapping[str, Any]]:
        """All items below `key` of a list. Raises GoogleApiError."""
        token = ""
        while True:
            asked = {**query, **({"pageToken": token} if token else {})}
            found = self._ask("GET", api, f"{path}?{urllib.parse.urlencode(asked)}")
            yield from found.get(key) or ()
            token = str(found.get("nextPageToken") or "")
            if not token:
                return

    def post(self, api: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a POST request. Raises GoogleApiError."""
        return self._ask("POST", api, path, json.dumps(body).encode())

    def keep(self, bucket: str, name: str, text: str) -> bool:
        """Write an object unless its name exists; returns whether it was written. Raises GoogleApiError."""
        query = urllib.parse.urlencode({"uploadType": "media", "name": name, "ifGenerationMatch": "0"})
        try:
            self._ask("POST", "storage", f"upload/storage/v1/b/{bucket}/o?{query}", text.encode())
        except GoogleApiError as error:
            if error.status != 412:
                raise
            return False
        return True

    def _ask(self, method: str, api: str, path: str, data: bytes | None = None) -> Mapping[str, Any]:
        if not self._token:
            found = _fetch(f"{self._metadata}/{_TOKEN}", "GET", {"Metadata-Flavor": "Google"})
            self._token = str(found["access_token"])
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return _fetch(f"{self._endpoints[api]}/{path}", method, headers, data)


def _fetch(url: str, method: str, headers: Mapping[str, str], data: bytes | None = None) -> Mapping[str, Any]:
    request = urllib.request.Request(url, data, dict(headers), method=method)  # noqa: S310 - addresses above
    try:
        with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:  # noqa: S310
            found: Mapping[str, Any] = json.loads(answer.read() or b"{}")
            return found
    except urllib.error.HTTPError as error:
        raise GoogleApiError(
            url.partition("?")[0], error.code, error.read(2000).decode(errors="replace")
        ) from error
