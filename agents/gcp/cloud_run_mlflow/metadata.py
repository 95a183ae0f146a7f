"""Tokens of a Cloud Run service's own account, from the metadata server; standard library only.

As in Google's libraries, GCE_METADATA_HOST overrides the server.
"""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping

_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
# The scope of a login (Cloud SQL documentation, "Log in using IAM database authentication").
LOGIN_SCOPE = "https://www.googleapis.com/auth/sqlservice.login"
_REQUEST_S = 10.0
# The metadata server of a new instance may not respond yet.
PATIENCE_S = 30.0
_PAUSE_S = 1.0


class NoTokenError(OSError):
    """The metadata server returned no token; the message contains no secret."""


class OwnTokens:
    """`libpq.Tokens` of the instance's own account: the database user is the account itself."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._host = environment.get("GCE_METADATA_HOST") or "metadata.google.internal"
        self._clock, self._pause = clock, pause
        self._patient_until = clock() + PATIENCE_S

    def token(self, identity: str) -> str:
        """A token that is valid only for database logins. Raises NoTokenError.

        `identity` is used in messages only: an instance has tokens of its own account only.
        """
        while True:
            try:
                return self._requested()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                if self._clock() + _PAUSE_S > self._patient_until:
                    raise NoTokenError(f"no token for {identity}: {type(error).__name__}") from error
            self._pause(_PAUSE_S)

    def _requested(self) -> str:
        query = urllib.parse.urlencode({"scopes": LOGIN_SCOPE})
        request = urllib.request.Request(
            f"http://{self._host}/{_TOKEN}?{query}", headers={"Metadata-Flavor": "Google"}
        )
        with urllib.request.urlopen(request, timeout=_REQUEST_S) as response:  # noqa: S310
            return str(json.loads(response.read())["access_token"])
