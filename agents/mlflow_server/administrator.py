"""MLflow's first user, its administrator; its password is kept in the cloud's store of secrets.

Only the Jobs that upgrade the tables and create users read it; the server's pods never do.
"""

import importlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

log = logging.getLogger("trainstack.mlflow")

NAME = "admin"


class CredentialStore(Protocol):
    """The cloud's store of secrets whose values are JSON objects of strings."""

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        """The fields of a secret and their version; None while it has no value."""

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        """Store a secret's first value; False when another process stored one, which is then used."""


def password(store: CredentialStore, secret: str, pause: Callable[[float], None] = time.sleep) -> str:
    """The administrator's password; creates and stores one when the secret has no value yet."""
    found = store.read(secret)
    if found is None:
        _store_new(store, secret)
        found = _read_new(store, secret, pause)
    if not found[0].get("password"):
        raise ValueError(f"the secret {secret} lacks password")
    return found[0]["password"]


def _store_new(store: CredentialStore, secret: str) -> None:
    if store.store_first(secret, {"username": NAME, "password": secrets.token_urlsafe(32)}):
        log.info("stored a new password of MLflow's administrator in %s", secret)
    else:
        log.info("another process stored the password of MLflow's administrator")


def _read_new(
    store: CredentialStore, secret: str, pause: Callable[[float], None]
) -> tuple[dict[str, str], str]:
    """Read a new value, which may take a moment to be visible. Raises ValueError without one."""
    for wait in (0.2, 0.5, 1.0, 2.0, 4.0, 0.0):
        found = store.read(secret)
        if found is not None:
            return found
        pause(wait)
    raise ValueError(f"the secret {secret} has no value")


def configuration(uri: str) -> str:
    """The configuration of MLflow's basic-auth app, which keeps its users in the tracking database.

    A user sees nothing without a grant. Verified passwords are cached for a minute (in each worker): hashing
    one takes longer than most requests, and a training job sends many.
    """
    escaped = uri.replace("%", "%%")  # configparser would read %40 as a reference
    return (
        "[mlflow]\n"
        "default_permission = NO_PERMISSIONS\n"
        f"database_uri = {escaped}\n"
        f"admin_username = {NAME}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        "auth_cache_ttl_seconds = 60\n"
    )


def create(uri: str, made: str) -> None:
    """Create the user with the password `made`, unless it exists; the tables must be there.

    By functions of mlflow 3.17.2, `server/auth/__init__.py`: the password is in no file or variable.
    """
    auth: Any = importlib.import_module("mlflow.server.auth")
    auth.store.init_db(uri)
    auth.create_admin_user(NAME, made)
