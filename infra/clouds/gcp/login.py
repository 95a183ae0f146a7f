"""Sessions with the Google credentials of the environment; detection of missing or rejected credentials."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import google.auth
import requests
from google.auth import exceptions, impersonated_credentials
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from infra.clouds.sessions import GCP_LOG_IN

# It warns about logins without a project; callers here pass the project themselves.
logging.getLogger("google.auth._default").setLevel(logging.ERROR)

LOG_IN = GCP_LOG_IN
# IAM limits the rights; some methods accept no narrower scope (discovery documents, `scopes`).
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LATER = (429, 500, 502, 503, 504)
_LONGEST = 60.0
"""Maximum seconds between two attempts, also above Retry-After."""
# Discovery document oauth2 v2, userinfo.get.
_USER = "https://www.googleapis.com/oauth2/v2/userinfo"
_SECONDS = 10


class LoggedOutError(Exception):
    """No credentials, or Google rejects them."""


def session(
    attempts: int, billed: str | None = None, impersonate: str | None = None
) -> tuple[requests.Session, str]:
    """(session with this number of attempts per request, project of the environment or "").

    Requests count against the quotas of the project `billed`, by default that of the credentials. They are
    sent as the service account `impersonate`, where there is one, whose tokens are renewed. Raises
    LoggedOutError where the environment has no credentials.
    """
    with logged_in():
        if impersonate is None:
            credentials, project = google.auth.default(scopes=[_SCOPE], quota_project_id=billed)
        else:
            source, project = google.auth.default(scopes=[_SCOPE])
            credentials = impersonated_credentials.Credentials(
                source, impersonate, [_SCOPE], quota_project_id=billed
            )
    made = AuthorizedSession(credentials)
    made.mount("https://", HTTPAdapter(max_retries=retries(attempts)))
    return made, project or ""


def who(credentials: object) -> str | None:
    """The IAM principal of the credentials; None if unknown.

    For users, the address needs a token with all scopes of their login: the cloud scope alone does not
    include it. Raises LoggedOutError.
    """
    address = getattr(credentials, "service_account_email", None)
    if isinstance(address, str) and "@" in address:
        return f"serviceAccount:{address}"
    if not isinstance(credentials, Credentials):
        return None
    whole = Credentials(
        None,
        refresh_token=credentials.refresh_token,
        token_uri=credentials.token_uri,
        client_id=credentials.client_id,
        client_secret=credentials.client_secret,
    )
    with logged_in(), AuthorizedSession(whole) as asking:
        try:
            answer = asking.get(_USER, timeout=_SECONDS)
            found = answer.json().get("email") if answer.ok else None
        except (requests.RequestException, ValueError, AttributeError):
            return None
    return f"user:{found}" if found else None


def retries(attempts: int) -> Retry:
    """Exponential backoff of 1, 2, 4 seconds and so on for unavailable services (google.api, AIP-194).

    POST is retried, too: such requests only read here.
    """
    return Retry(
        total=attempts - 1,
        connect=2,
        status_forcelist=_LATER,
        allowed_methods=None,
        backoff_factor=0.5,
        backoff_max=_LONGEST,
        retry_after_max=int(_LONGEST),
        raise_on_status=False,
    )


@contextmanager
def logged_in() -> Iterator[None]:
    """Raise LoggedOutError for requests within, if there are no credentials or they are rejected."""
    try:
        yield
    except exceptions.GoogleAuthError as error:
        raise LoggedOutError(str(error.args[0] if error.args else error)) from error
