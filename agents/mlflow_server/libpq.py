"""PostgreSQL login of the tracking server: a file that is renewed while the server runs.

The password is a token with which the cloud authenticates an identity, or that of a secret that the cloud
rotates.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# A token is used only when a connection is opened, and is valid for about an hour. With this interval, in
# seconds, the cloud may be unavailable for three quarters of an hour.
TOKEN_AGE_S = 900.0
# A rotated password is refused at once. Interval of checks, in seconds.
SECRET_AGE_S = 60.0


class Tokens(Protocol):
    """Issues tokens."""

    def token(self, identity: str) -> str:
        """A password of the identity that is valid for at least half an hour."""


@dataclass(frozen=True)
class SecretPassword:
    """`Tokens` whose token is the field `password` of a secret."""

    store: Any
    """An `administrator.CredentialStore`."""

    def token(self, identity: str) -> str:
        """The password in the secret `identity`."""
        found = self.store.read(identity)
        if found is None:
            raise ValueError(f"the secret {identity} has no value")
        return str(found[0]["password"])


class Login:
    """A password file that is renewed while the server runs, and the trusted certificates.

    libpq reads the file whenever it opens a connection (PostgreSQL documentation, "The Password File"), in
    every process that has PGPASSFILE in its environment: each connection of a pool gets the current token,
    and MLflow's processes need no code of ours.
    """

    environment: dict[str, str]
    """Variables with which libpq finds both."""

    def __init__(
        self,
        tokens: Tokens,
        folder: Path,
        *,
        identity: str,
        authorities: str,
        age_s: float = TOKEN_AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identity` and `authorities` (PEM) may be empty: then there is no such file."""
        self._tokens, self._identity, self._age_s, self._clock = tokens, identity, age_s, clock
        self._written = float("-inf")
        self._path = folder / "pgpass"
        self.environment = {"PGPASSFILE": str(self._path)} if identity else {}
        if authorities:
            trusted = folder / "database-ca.pem"
            trusted.write_text(authorities)
            self.environment["PGSSLROOTCERT"] = str(trusted)

    def renew(self) -> None:
        """Replace the password unless it is recent. Raises the errors of `token`; the file then stays."""
        if not self._identity or self._clock() - self._written < self._age_s:
            return
        password = self._tokens.token(self._identity).replace("\\", "\\\\").replace(":", "\\:")
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)  # libpq refuses a file that others can read
        fresh.write_text(f"*:*:*:*:{password}\n")
        fresh.replace(self._path)
        self._written = self._clock()


def login(environment: Mapping[str, str], store: Any, folder: Path) -> Login:
    """The login that these variables describe, with its first password.

    DATABASE_URI            SQLAlchemy URI without a password
    DATABASE_SECRET         secret with the field `password`
    DATABASE_IDENTITY       database user, where short-lived tokens of the cloud are the password
    DATABASE_CA             CA certificates (PEM) of the database's certificate; unset: libpq's default

    `store` reads the secret (`administrator.CredentialStore`), or issues the tokens. Another database than
    PostgreSQL has neither.
    """
    if not environment["DATABASE_URI"].startswith("postgresql"):
        return Login(store, folder, identity="", authorities="")
    secret, authorities = environment.get("DATABASE_SECRET", ""), environment.get("DATABASE_CA", "")
    if secret:
        tokens = SecretPassword(store)
        made = Login(tokens, folder, identity=secret, authorities=authorities, age_s=SECRET_AGE_S)
    else:
        identity = environment.get("DATABASE_IDENTITY", "")
        made = Login(store, folder, identity=identity, authorities=authorities)
    made.renew()
    return made
