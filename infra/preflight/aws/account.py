"""The account that is asked, and what becomes of a question that it does not answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config

from infra.naming import TAG_PREFIX
from infra.preflight.answers import Answer, State
from infra.preflight.machine import Machine
from infra.stackspec import StackSpec
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout

Clients = Callable[[str, str], Any]
"""A client of a service in a region."""

STACK_TAG = f"{TAG_PREFIX}:stack"
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
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
LOG_IN = "Log in (aws sso login, or aws configure), and set AWS_PROFILE where you have several."


class LoggedOutError(Exception):
    """There are no credentials that the account accepts."""


@dataclass(frozen=True)
class Account:
    """A stack of the medium layout on AWS, and the account it is meant for."""

    spec: StackSpec
    layout: MediumLayout
    on: AwsSpec
    clients: Clients
    machine: Machine = field(default_factory=Machine)

    def client(self, service: str, region: str = "") -> Any:
        """A client in the region of the stack, or in another one."""
        return self.clients(service, region or self.spec.region)

    def pages(self, service: str, operation: str, key: str, **asked: Any) -> Iterator[Any]:
        """Every item of a list that a service returns in pages."""
        for page in self.client(service).get_paginator(operation).paginate(**asked):
            yield from page[key]

    def owns(self, tags: list[dict[str, str]]) -> bool:
        """Whether something with these tags belongs to the stack itself."""
        return any(tag["Key"] == STACK_TAG and tag["Value"] == self.spec.name for tag in tags)


def clients() -> Clients:
    """Clients with the environment's credentials. Raises LoggedOutError for a profile that is not there."""
    with logged_in():
        session = boto3.Session()
    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "max_attempts": 4})
    return lambda service, region: session.client(service, region_name=region, config=config)


@contextmanager
def logged_in() -> Iterator[None]:
    """What is asked within. Raises LoggedOutError where there are no credentials, or they are refused."""
    try:
        yield
    except exceptions.ClientError as error:
        code, message = _told(error)
        if code in _REFUSED:
            raise LoggedOutError(f"{code}: {message}") from error
        raise
    except _LOGGED_OUT as error:
        raise LoggedOutError(str(error)) from error


def answered(name: str, check: Callable[[Account], Iterator[Answer]], account: Account) -> Iterator[Answer]:
    """The answers of a check; where it could not be made, that it could not, and why.

    Raises LoggedOutError.
    """
    try:
        with logged_in():
            yield from check(account)
    except exceptions.ClientError as error:
        yield unanswered(name, error)
    except exceptions.BotoCoreError as error:
        yield Answer(name, State.UNKNOWN, str(error), "Look at the connection to AWS, and ask again.")


def unanswered(name: str, error: exceptions.ClientError) -> Answer:
    """What a refused request leaves unknown."""
    code, message = _told(error)
    fix = "Ask again; if it stays so, look into the service's status."
    if code in _DENIED:
        fix = f"Allow the request {error.operation_name}; docs/preflight.md has a policy with all of them."
    return Answer(name, State.UNKNOWN, f"{error.operation_name} was refused: {code}: {message}", fix)


def _told(error: exceptions.ClientError) -> tuple[str, str]:
    return error.response["Error"]["Code"], error.response["Error"].get("Message", "")
