"""PostgreSQL login of the tracking server without a stored password; lies beside `serve.py` in the pod.

The cloud's store of secrets issues tokens with which the database authenticates an identity (`Tokens`).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

# A token is used only when a connection is opened, and is valid for about an hour. With this interval, in
# seconds, the cloud may be unavailable for three quarters of an hour.
TOKEN_AGE_S = 900.0


class Tokens(Protocol):
    """Issues tokens."""

    def token(self, identity: str) -> str:
        """A password of the identity that is valid for at least half an hour."""


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identity` and `authorities` (PEM) may be empty: then there is no such file."""
        self._tokens, self._identity, self._clock = tokens, identity, clock
        self._written = float("-inf")
        self._path = folder / "pgpass"
        self.environment = {"PGPASSFILE": str(self._path)} if identity else {}
        if authorities:
            trusted = folder / "database-ca.pem"
            trusted.write_text(authorities)
            self.environment["PGSSLROOTCERT"] = str(trusted)

    def renew(self) -> None:
        """Replace the password unless it is recent. Raises the errors of `token`; the file then stays."""
        if not self._identity or self._clock() - self._written < TOKEN_AGE_S:
            return
        password = self._tokens.token(self._identity).replace("\\", "\\\\").replace(":", "\\:")
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)  # libpq refuses a file that others can read
        fresh.write_text(f"*:*:*:*:{password}\n")
        fresh.replace(self._path)
        self._written = self._clock()
