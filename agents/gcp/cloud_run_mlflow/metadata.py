"""Tokens of the account as which a Cloud Run service runs, from the metadata server; standard library only.

As in Google's libraries, GCE_METADATA_HOST leads elsewhere.
"""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping

_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
# All that a login needs (Cloud SQL documentation, "Log in using IAM database authentication").
LOGIN_SCOPE = "https://www.googleapis.com/auth/sqlservice.login"
_REQUEST_S = 10.0
# A new instance may ask before its metadata server answers.
PATIENCE_S = 30.0
_PAUSE_S = 1.0


class NoTokenError(OSError):
    """The metadata server gave no token; the message holds none either."""


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
        """A token that is good for logins to databases alone. Raises NoTokenError.

        `identity` is only who asks: an instance has one account, and no other's tokens.
        """
        while True:
            try:
                return self._asked()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                if self._clock() + _PAUSE_S > self._patient_until:
                    said = f"no token for {identity}: {type(error).__name__}"
                    raise NoTokenError(said) from error
            self._pause(_PAUSE_S)

    def _asked(self) -> str:
        query = urllib.parse.urlencode({"scopes": LOGIN_SCOPE})
        request = urllib.request.Request(
            f"http://{self._host}/{_TOKEN}?{query}", headers={"Metadata-Flavor": "Google"}
        )
        with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:  # noqa: S310
            return str(json.loads(answer.read())["access_token"])
