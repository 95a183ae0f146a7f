"""A session with the Google credentials of the environment, and what it looks like when there are none."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import google.auth
import requests
from google.auth import exceptions
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

# It warns of logins that name no project; whoever needs one here says so, or has it from elsewhere.
logging.getLogger("google.auth._default").setLevel(logging.ERROR)

LOG_IN = "Log in (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS."
# It can ask and change nothing; some of what is asked has no narrower one (discovery documents, `scopes`).
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LATER = (429, 500, 502, 503, 504)
_LONGEST = 60.0
"""Seconds between two attempts, whatever a service asks for."""
# Discovery document oauth2 v2, userinfo.get.
_USER = "https://www.googleapis.com/oauth2/v2/userinfo"
_SECONDS = 10


class LoggedOutError(Exception):
    """There are no credentials that Google accepts."""


def session(attempts: int, billed: str | None = None) -> tuple[requests.Session, str]:
    """(a session that asks so often before it gives up, the project of the environment or "").

    Requests count against the quotas of the project `billed`; by default of that of the credentials. Raises
    LoggedOutError where the environment has no credentials.
    """
    with logged_in():
        credentials, project = google.auth.default(scopes=[_SCOPE], quota_project_id=billed)
    made = AuthorizedSession(credentials)
    made.mount("https://", HTTPAdapter(max_retries=retries(attempts)))
    return made, project or ""


def who(credentials: object) -> str | None:
    """Whose credentials these are, as IAM calls them; None where they do not tell.

    Those of people tell by a token of all the scopes that they logged in with: one for the cloud alone has no
    right to the address. Raises LoggedOutError.
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
    """Waits longer each time, 1, 2, 4 seconds and so on, where a service is busy (google.api, AIP-194).

    Requests that are sent with POST only read here, so they may be sent again, too.
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
    """What is asked within. Raises LoggedOutError where there are no credentials, or they are refused."""
    try:
        yield
    except exceptions.GoogleAuthError as error:
        raise LoggedOutError(str(error.args[0] if error.args else error)) from error
