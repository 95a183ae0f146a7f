"""Asks one method of one of Google's APIs: its pages, and what a refusal says."""

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
"""The reason where requests may not count against a project (google.api ErrorReason)."""
_SECONDS = (5, 60)
"""To connect, and between two pieces of an answer."""
_TOKEN = "nextPageToken"  # noqa: S105 - the name of a field
_NAMED = re.compile(r"\{(\w+)\}")
# Where APIs answer instead of at their own addresses: the Cloud SDK's `api_endpoint_overrides` (gcloud topic
# configurations) as environment variables, and where Google's storage libraries look.
_OVERRIDE, _STORAGE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_", "STORAGE_EMULATOR_HOST"
_STATUS = {403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(frozen=True)
class ApiMethod:
    """How a method is asked."""

    address: str
    """With parameters in braces; all others go into the query, or into the body of a POST."""
    verb: str = "GET"
    page: Mapping[str, int] = field(default_factory=dict)
    """The parameter that says how much a page holds, and the most that it may."""
    right: str = ""
    """The permission that it needs, where no question names it."""


def endpoint(api: str, host: str) -> str:
    """The address of an API such as `aiplatform`, without a slash at its end; `host` is its own."""
    return (os.environ.get(f"{_OVERRIDE}{api.upper()}") or f"https://{host}").rstrip("/")


def storage() -> str:
    """The address of Cloud Storage."""
    return (os.environ.get(_STORAGE) or "https://storage.googleapis.com").rstrip("/")


class ApiRequestError(Exception):
    """A method did not answer, or not in full."""

    def __init__(self, code: str, message: str, *, consumer: str | None = None, service: str = "") -> None:
        """`consumer`: the project that it is about, "" where Google names none; None: nothing was refused."""
        super().__init__(code, message)
        self.code, self.message, self.consumer, self.service = code, message, consumer, service
        self.method = ""
        """What was asked, where somebody noted it."""

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
            raise ApiRequestError(HALF, "a page leads to itself")
        further = {"pageToken": token}


def answer(session: requests.Session, method: ApiMethod, given: Mapping[str, Any]) -> dict[str, Any]:
    """One answer. Raises ApiRequestError, LoggedOutError, and RequestException or ValueError."""
    in_path = set(_NAMED.findall(method.address))
    address = _NAMED.sub(lambda name: quote(str(given[name[1]]), safe="/:"), method.address)
    rest = {name: value for name, value in given.items() if name not in in_path}
    sent: dict[str, Any] = {"json": _nested(rest)} if method.verb == "POST" else {"params": rest}
    response = session.request(method.verb, address, timeout=_SECONDS, **sent)
    if response.status_code == requests.codes.unauthorized:
        raise LoggedOutError(f"UNAUTHENTICATED: {_told(response)[1]}")
    if not response.ok:
        about = _reason(response).get("metadata", {})
        who, service = str(about.get("consumer", "")), str(about.get("service", ""))
        raise ApiRequestError(*_told(response), consumer=who, service=service)
    page = response.json()
    if not isinstance(page, dict):
        raise ValueError("the answer is no object")
    # Lists over places say which did not answer: AIP-217, and Compute Engine with a name of its own.
    lacking = [*(page.get("unreachable") or ()), *(page.get("unreachables") or ())]
    if lacking:
        raise ApiRequestError(HALF, f"without {', '.join(map(str, lacking))}")
    return page


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"options.requestedPolicyVersion": 3}` as the object that it stands for."""
    made: dict[str, Any] = {}
    for path, value in given.items():
        *above, name = path.split(".")
        below = made
        for step in above:
            below = below.setdefault(step, {})
        below[name] = value
    return made


def _told(response: requests.Response) -> tuple[str, str]:
    """Code and message of a refusal (google.rpc.Status; some services have forms of their own)."""
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
    """The ErrorInfo of a refusal; empty where it has none."""
    rows = _error(response).get("details") or ()
    kind = "google.rpc.ErrorInfo"
    return next((one for one in rows if isinstance(one, dict) and str(one.get("@type")).endswith(kind)), {})
