"""AWS clients with the credentials of the environment; detection of missing or rejected credentials."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config

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


def clients(attempts: int = 4) -> Clients:
    """Clients with the environment's credentials and this number of attempts per request.

    Retries back off up to 20 seconds (standard mode of the SDK). Raises LoggedOutError for a profile that
    does not exist.
    """
    with logged_in():
        session = boto3.Session()
    retries = {"mode": "standard", "max_attempts": attempts}
    config = Config(connect_timeout=5, read_timeout=20, retries=retries)
    return lambda service, region: session.client(service, region_name=region, config=config)


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
