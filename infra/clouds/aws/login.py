"""Clients of AWS with the credentials of the environment, and what it looks like when there are none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config

Clients = Callable[[str, str], Any]
"""A client of a service in a region."""

# What the SDK raises where there are no credentials, or some that it cannot refresh.
_LOGGED_OUT = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.LoginError,
    exceptions.ProfileNotFound,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
# What services answer to credentials that expired or never existed, each with words of its own ("Common Error
# Types" of their API references).
_REFUSED = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "RequestExpired",
    "UnrecognizedClientException",
}
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
LOG_IN = "Log in (aws sso login, or aws configure), and set AWS_PROFILE where you have several."


class LoggedOutError(Exception):
    """There are no credentials that the account accepts."""


def clients(attempts: int = 4) -> Clients:
    """Clients with the environment's credentials, which ask so often before they give up.

    They wait longer each time, up to 20 seconds (standard mode of the SDK's retries). Raises LoggedOutError
    for a profile that is not there.
    """
    with logged_in():
        session = boto3.Session()
    retries = {"mode": "standard", "max_attempts": attempts}
    config = Config(connect_timeout=5, read_timeout=20, retries=retries)
    return lambda service, region: session.client(service, region_name=region, config=config)


@contextmanager
def logged_in() -> Iterator[None]:
    """What is asked within. Raises LoggedOutError where there are no credentials, or they are refused."""
    try:
        yield
    except exceptions.ClientError as error:
        code, message = told(error)
        if code in _REFUSED:
            raise LoggedOutError(f"{code}: {message}") from error
        raise
    except _LOGGED_OUT as error:
        raise LoggedOutError(str(error)) from error


def told(error: exceptions.ClientError) -> tuple[str, str]:
    """Code and message of a refusal."""
    return error.response["Error"]["Code"], error.response["Error"].get("Message", "")


def default_region() -> str:
    """The region of the environment or profile; empty where none is set. Raises LoggedOutError."""
    with logged_in():
        return str(boto3.Session().region_name or "")
