"""Objects and secrets of a stack on Google Cloud, accessed with the user's own credentials."""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from infra.clouds.gcp import login as google_login
from infra.clouds.gcp.api import endpoint, storage

_ATTEMPTS, _REQUEST_S = 3, 30.0
# FAILED_PRECONDITION, for a version that is disabled or destroyed.
_NOT_USABLE = 400
_THERE_ALREADY = 412


class CloudStorageError(Exception):
    """An object or secret cannot be read or written; the message has the reason."""

    def __init__(self, why: str, status: int | None = None, *, lost: bool = False) -> None:
        """`status` of the response, None without one; `lost`: no response, or a server error."""
        super().__init__(why)
        self.status, self.lost = status, lost


def read_object(uri: str) -> bytes:
    """The object at `gs://bucket/name`. Raises StorageError, also without a login."""
    place = urlsplit(uri)
    name = quote(place.path.lstrip("/"), safe="")
    return bytes(_get(f"{storage()}/storage/v1/b/{place.netloc}/o/{name}", {"alt": "media"}).content)


def keep_object(uri: str, content: bytes) -> bool:
    """Write `gs://bucket/name` unless it exists; return whether it was missing.

    Raises StorageError where it may not be written, also without a login. Source: Cloud Storage
    documentation, "Request preconditions" (ifGenerationMatch=0).
    """
    place = urlsplit(uri)
    url = f"{storage()}/upload/storage/v1/b/{place.netloc}/o"
    query = {"uploadType": "media", "name": place.path.lstrip("/"), "ifGenerationMatch": "0"}
    # A retry may find the object of the first attempt: then it exists.
    answer = _asked("POST", url, query, accepted=(_THERE_ALREADY,), content=content)
    return bool(answer.ok)


def read_secret(secret: str) -> Mapping[str, Any]:
    """The fields of a secret (`projects/P/secrets/S`) as the pods read it.

    Version 1 while it is enabled, then the latest (agents/gcp/mlflow_server/secret_store.py).
    Raises StorageError, also without a login.
    """
    secrets = f"{endpoint('secretmanager', 'secretmanager.googleapis.com')}/v1"
    answer = _get(f"{secrets}/{secret}/versions/1:access", {}, accepted=(_NOT_USABLE,))
    if answer.status_code == _NOT_USABLE:
        answer = _get(f"{secrets}/{secret}/versions/latest:access", {})
    try:
        found = json.loads(base64.b64decode(answer.json()["payload"]["data"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CloudStorageError(f"{secret} holds no JSON") from error
    if not isinstance(found, dict):
        raise CloudStorageError(f"{secret} holds no JSON object")
    return found


def _get(url: str, query: Mapping[str, str], accepted: tuple[int, ...] = ()) -> requests.Response:
    return _asked("GET", url, query, accepted)


def _asked(
    verb: str, url: str, query: Mapping[str, str], accepted: tuple[int, ...], content: bytes | None = None
) -> requests.Response:
    try:
        session, _ = google_login.session(_ATTEMPTS)
        with google_login.logged_in():
            answer = session.request(verb, url, params=dict(query), data=content, timeout=_REQUEST_S)
    except google_login.LoggedOutError as error:
        raise CloudStorageError(str(error)) from error
    except requests.RequestException as error:
        raise CloudStorageError(str(error), lost=True) from error
    if answer.ok or answer.status_code in accepted:
        return answer
    raise CloudStorageError(
        f"status {answer.status_code}: {_message(answer)}", answer.status_code, lost=answer.status_code >= 500
    )


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (KeyError, TypeError, ValueError):
        return answer.text[:300].strip() or answer.reason
