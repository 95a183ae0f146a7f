"""AWS clients with the credentials of the environment; detection of missing or rejected credentials."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
import botocore.session
from botocore import exceptions
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

from infra.clouds.sessions import AWS_LOG_IN

Clients = Callable[[str, str], Any]
"""A client of a service in a region."""

# Raised by the SDK without credentials, or when it cannot refresh them.
_LOGGED_OUT = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.LoginError,
    exceptions.ProfileNotFound,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
# Error codes of services for expired or unknown credentials ("Common Error Types" of their API references).
_REJECTED = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "RequestExpired",
    "UnrecognizedClientException",
}
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
LOG_IN = AWS_LOG_IN


class LoggedOutError(Exception):
    """No credentials, or the account rejects them."""


@dataclass(frozen=True)
class AssumedRole:
    """A role to assume with the environment's credentials."""

    arn: str
    session: str
    """Name of the session in the log of the account."""
    region: str
    """Region of the STS to ask."""
    external_id: str | None = None


def clients(attempts: int = 4, role: AssumedRole | None = None) -> Clients:
    """Clients with the environment's credentials, or those of a role, and these attempts per request.

    Retries back off up to 20 seconds (standard mode of the SDK). Raises LoggedOutError for a profile that
    does not exist. A role is assumed by the first request, which fails where it may not be, and again before
    its credentials end.
    """
    with logged_in():
        session = boto3.Session()
        if role is not None:
            session = _assuming(session, role)
    retries = {"mode": "standard", "max_attempts": attempts}
    config = Config(connect_timeout=5, read_timeout=20, retries=retries)
    return lambda service, region: session.client(service, region_name=region, config=config)


def _assuming(given: boto3.Session, role: AssumedRole) -> boto3.Session:
    source = given.get_credentials()
    if source is None:
        raise exceptions.NoCredentialsError
    asked = {"RoleSessionName": role.session}
    if role.external_id is not None:
        asked["ExternalId"] = role.external_id
    made = botocore.session.get_session()
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(made.create_client, region_name=role.region),
        source_credentials=source,
        role_arn=role.arn,
        extra_args=asked,
    )
    made._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return boto3.Session(botocore_session=made)


@contextmanager
def logged_in() -> Iterator[None]:
    """Raise LoggedOutError for requests within, if there are no credentials or they are rejected."""
    try:
        yield
    except exceptions.ClientError as error:
        code, message = code_and_message(error)
        if code in _REJECTED:
            raise LoggedOutError(f"{code}: {message}") from error
        raise
    except _LOGGED_OUT as error:
        raise LoggedOutError(str(error)) from error


def code_and_message(error: exceptions.ClientError) -> tuple[str, str]:
    """Code and message of an error response."""
    return error.response["Error"]["Code"], error.response["Error"].get("Message", "")


def default_region() -> str:
    """The region of the environment or profile; empty where none is set. Raises LoggedOutError."""
    with logged_in():
        return str(boto3.Session().region_name or "")
