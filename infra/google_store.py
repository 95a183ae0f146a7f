"""What people read of a stack on Google Cloud with rights of their own: an object, a secret."""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from infra import google_login

_STORAGE = "https://storage.googleapis.com/storage/v1"
_SECRETS = "https://secretmanager.googleapis.com/v1"
_ATTEMPTS, _REQUEST_S = 3, 30.0
# FAILED_PRECONDITION, for a version that is disabled or destroyed.
_NOT_USABLE = 400


class UnreadableError(Exception):
    """It cannot be read; says why."""


def read_object(uri: str) -> bytes:
    """The object at `gs://bucket/name`. Raises UnreadableError, also where nobody is logged in."""
    place = urlsplit(uri)
    name = quote(place.path.lstrip("/"), safe="")
    return bytes(_get(f"{_STORAGE}/b/{place.netloc}/o/{name}", {"alt": "media"}).content)


def read_secret(secret: str) -> Mapping[str, Any]:
    """The fields of a secret (`projects/P/secrets/S`) with the rule of the pods that write it.

    Version 1 counts as long as it is enabled, and then the latest (components/gcp/tracking/secret_store.py).
    Raises UnreadableError, also where nobody is logged in.
    """
    answer = _get(f"{_SECRETS}/{secret}/versions/1:access", {}, accepted=(_NOT_USABLE,))
    if answer.status_code == _NOT_USABLE:
        answer = _get(f"{_SECRETS}/{secret}/versions/latest:access", {})
    try:
        found = json.loads(base64.b64decode(answer.json()["payload"]["data"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"{secret} holds no JSON") from error
    if not isinstance(found, dict):
        raise UnreadableError(f"{secret} holds no JSON object")
    return found


def _get(url: str, query: Mapping[str, str], accepted: tuple[int, ...] = ()) -> requests.Response:
    try:
        asking, _ = google_login.session(_ATTEMPTS)
        with google_login.logged_in():
            answer = asking.get(url, params=dict(query), timeout=_REQUEST_S)
    except (google_login.LoggedOutError, requests.RequestException) as error:
        raise UnreadableError(str(error)) from error
    if answer.ok or answer.status_code in accepted:
        return answer
    raise UnreadableError(f"status {answer.status_code}: {_said(answer)}")


def _said(answer: requests.Response) -> str:
    """What the API says of it, without the rest of its answer."""
    try:
        return str(answer.json()["error"]["message"])
    except (KeyError, TypeError, ValueError):
        return answer.text[:300].strip() or answer.reason
