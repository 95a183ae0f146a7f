"""How the tracking server logs in to PostgreSQL without a password; lies beside `serve.py` in the pod.

Its store of secrets hands out tokens by which the database knows an identity (`Tokens`).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

# A token is asked for only when a connection is made, and it is good for about an hour. One that is replaced
# this often, in seconds, leaves the cloud three quarters of an hour in which it may not answer.
TOKEN_AGE_S = 900.0


class Tokens(Protocol):
    """What hands out tokens."""

    def token(self, identity: str) -> str:
        """A password of the identity that is good for half an hour at least."""


class Login:
    """A password file whose password is replaced while the server runs, and the certificates it trusts.

    libpq reads the file whenever it makes a connection (PostgreSQL documentation, "The Password File"), in
    every process that has PGPASSFILE in its environment: each connection of a pool gets the token of its
    moment, and MLflow's processes need no code of ours.
    """

    environment: dict[str, str]
    """Variables by which libpq finds both."""

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
        """Replace the password unless it is young. Raises what `token` raises; the file then stays."""
        if not self._identity or self._clock() - self._written < TOKEN_AGE_S:
            return
        password = self._tokens.token(self._identity).replace("\\", "\\\\").replace(":", "\\:")
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)  # libpq refuses a file that others can read
        fresh.write_text(f"*:*:*:*:{password}\n")
        fresh.replace(self._path)
        self._written = self._clock()
