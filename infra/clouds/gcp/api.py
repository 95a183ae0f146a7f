"""Calls a method of a Google API: paging, and parsing of errors."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import requests

from infra.clouds.gcp.login import LoggedOutError

HALF, DISABLED = "IncompleteAnswer", "SERVICE_DISABLED"
USER_PROJECT = "USER_PROJECT_DENIED"
"""Error reason where requests may not be billed to a project (google.api ErrorReason)."""
_SECONDS = (5, 60)
"""Timeouts of connect and read."""
_TOKEN = "nextPageToken"  # noqa: S105 - the name of a field
_NAMED = re.compile(r"\{(\w+)\}")
# Environment variables that replace addresses of APIs: the Cloud SDK's `api_endpoint_overrides` (gcloud topic
# configurations), and that of Google's storage libraries.
_OVERRIDE, _STORAGE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_", "STORAGE_EMULATOR_HOST"
_STATUS = {403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(frozen=True)
class ApiMethod:
    """A method of an API."""

    address: str
    """With path parameters in braces; others are sent in the query, or in the body of a POST."""
    verb: str = "GET"
    page: Mapping[str, int] = field(default_factory=dict)
    """The parameter of the page size, with its maximum."""
    right: str = ""
    """The required permission, where the caller does not name it."""


def endpoint(api: str, host: str) -> str:
    """The address of an API such as `aiplatform`, without a slash at its end; `host` is its own."""
    return (os.environ.get(f"{_OVERRIDE}{api.upper()}") or f"https://{host}").rstrip("/")


def storage() -> str:
    """The address of Cloud Storage."""
    return (os.environ.get(_STORAGE) or "https://storage.googleapis.com").rstrip("/")


class ApiRequestError(Exception):
    """A method failed, or its response is incomplete."""

    def __init__(self, code: str, message: str, *, consumer: str | None = None, service: str = "") -> None:
        """`consumer`: the project of the error, "" where Google names none; None: not an error response."""
        super().__init__(code, message)
        self.code, self.message, self.consumer, self.service = code, message, consumer, service
        self.method = ""
        """The called method, where the caller sets it."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def pages(session: requests.Session, method: ApiMethod, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every page of a list. Raises as `answer` does."""
    further: dict[str, str] = {}
    while True:
        page = answer(session, method, {**given, **method.page, **further})
        yield page
        token = page.get(_TOKEN)
        if not token:
            return
        if further.get("pageToken") == token:
            raise ApiRequestError(HALF, "a page token repeats")
        further = {"pageToken": token}


def answer(session: requests.Session, method: ApiMethod, given: Mapping[str, Any]) -> dict[str, Any]:
    """One response. Raises ApiRequestError, LoggedOutError, and RequestException or ValueError."""
    in_path = set(_NAMED.findall(method.address))
    address = _NAMED.sub(lambda name: quote(str(given[name[1]]), safe="/:"), method.address)
    rest = {name: value for name, value in given.items() if name not in in_path}
    sent: dict[str, Any] = {"json": _nested(rest)} if method.verb == "POST" else {"params": rest}
    response = session.request(method.verb, address, timeout=_SECONDS, **sent)
    if response.status_code == requests.codes.unauthorized:
        raise LoggedOutError(f"UNAUTHENTICATED: {_code_and_message(response)[1]}")
    if not response.ok:
        about = _reason(response).get("metadata", {})
        who, service = str(about.get("consumer", "")), str(about.get("service", ""))
        raise ApiRequestError(*_code_and_message(response), consumer=who, service=service)
    page = response.json()
    if not isinstance(page, dict):
        raise ValueError("the response is not an object")
    # Lists over locations name those that failed: AIP-217; Compute Engine uses another field name.
    lacking = [*(page.get("unreachable") or ()), *(page.get("unreachables") or ())]
    if lacking:
        raise ApiRequestError(HALF, f"without {', '.join(map(str, lacking))}")
    return page


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"options.requestedPolicyVersion": 3}` as a nested object."""
    made: dict[str, Any] = {}
    for path, value in given.items():
        *above, name = path.split(".")
        below = made
        for step in above:
            below = below.setdefault(step, {})
        below[name] = value
    return made


def _code_and_message(response: requests.Response) -> tuple[str, str]:
    """Code and message of an error (google.rpc.Status; some services use other formats)."""
    error = _error(response)
    reason = _reason(response).get("reason")
    status = error.get("status") or _STATUS.get(response.status_code)
    code = reason if reason in (DISABLED, USER_PROJECT) else status
    message = str(error.get("message") or response.reason or "")
    return str(code or f"HTTP {response.status_code}"), message


def _error(response: requests.Response) -> dict[str, Any]:
    try:
        found = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(response: requests.Response) -> dict[str, Any]:
    """The ErrorInfo of an error; empty without one."""
    rows = _error(response).get("details") or ()
    kind = "google.rpc.ErrorInfo"
    return next((one for one in rows if isinstance(one, dict) and str(one.get("@type")).endswith(kind)), {})
