"""What people read and keep of a stack on Google Cloud with rights of their own: objects, secrets."""

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


class StorageError(Exception):
    """It cannot be read, or written; says why."""

    def __init__(self, why: str, status: int | None = None, *, lost: bool = False) -> None:
        """`status` of the answer, None without one; `lost`: there was none, or none that says anything."""
        super().__init__(why)
        self.status, self.lost = status, lost


def read_object(uri: str) -> bytes:
    """The object at `gs://bucket/name`. Raises StorageError, also where nobody is logged in."""
    place = urlsplit(uri)
    name = quote(place.path.lstrip("/"), safe="")
    return bytes(_get(f"{storage()}/storage/v1/b/{place.netloc}/o/{name}", {"alt": "media"}).content)


def keep_object(uri: str, content: bytes) -> bool:
    """Write `gs://bucket/name` where nothing is yet; whether it was missing.

    Raises StorageError where it may not be written, also where nobody is logged in. Source: Cloud Storage
    documentation, "Request preconditions" (ifGenerationMatch=0).
    """
    place = urlsplit(uri)
    url = f"{storage()}/upload/storage/v1/b/{place.netloc}/o"
    query = {"uploadType": "media", "name": place.path.lstrip("/"), "ifGenerationMatch": "0"}
    # Sent again, it meets itself: then it is there.
    answer = _asked("POST", url, query, accepted=(_THERE_ALREADY,), content=content)
    return bool(answer.ok)


def read_secret(secret: str) -> Mapping[str, Any]:
    """The fields of a secret (`projects/P/secrets/S`) with the rule of the pods that write it.

    Version 1 counts as long as it is enabled, and then the latest (agents/gcp/mlflow_server/secret_store.py).
    Raises StorageError, also where nobody is logged in.
    """
    secrets = f"{endpoint('secretmanager', 'secretmanager.googleapis.com')}/v1"
    answer = _get(f"{secrets}/{secret}/versions/1:access", {}, accepted=(_NOT_USABLE,))
    if answer.status_code == _NOT_USABLE:
        answer = _get(f"{secrets}/{secret}/versions/latest:access", {})
    try:
        found = json.loads(base64.b64decode(answer.json()["payload"]["data"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{secret} holds no JSON") from error
    if not isinstance(found, dict):
        raise StorageError(f"{secret} holds no JSON object")
    return found


def _get(url: str, query: Mapping[str, str], accepted: tuple[int, ...] = ()) -> requests.Response:
    return _asked("GET", url, query, accepted)


def _asked(
    verb: str, url: str, query: Mapping[str, str], accepted: tuple[int, ...], content: bytes | None = None
) -> requests.Response:
    try:
        asking, _ = google_login.session(_ATTEMPTS)
        with google_login.logged_in():
            answer = asking.request(verb, url, params=dict(query), data=content, timeout=_REQUEST_S)
    except google_login.LoggedOutError as error:
        raise StorageError(str(error)) from error
    except requests.RequestException as error:
        raise StorageError(str(error), lost=True) from error
    if answer.ok or answer.status_code in accepted:
        return answer
    raise StorageError(
        f"status {answer.status_code}: {_said(answer)}", answer.status_code, lost=answer.status_code >= 500
    )


def _said(answer: requests.Response) -> str:
    """What the API says of it, without the rest of its answer."""
    try:
        return str(answer.json()["error"]["message"])
    except (KeyError, TypeError, ValueError):
        return answer.text[:300].strip() or answer.reason
