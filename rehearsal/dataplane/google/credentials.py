"""Tokens: IAM Credentials (generateAccessToken), and the login of a rehearsal's user.

Source: the discovery document of iamcredentials v1; RFC 6749, section 6 (refreshing an access token).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rehearsal.dataplane.google.calls import Answer, Call, Method, ServiceError
from rehearsal.dataplane.google.identity import LIFETIME_S, Denied, GoogleIdentities


class Credentials:
    """See `calls.Api`."""

    def __init__(self, identities: GoogleIdentities) -> None:
        self._identities = identities

    def methods(self) -> Sequence[Method]:
        """See `calls.Api`."""
        email = r"v1/projects/-/serviceAccounts/(?P<email>[^/:]+):generateAccessToken"
        return (Method("POST", email, self._impersonate),)

    def _impersonate(self, call: Call) -> Answer:
        if not call.body.get("scope"):
            raise ServiceError(400, "The request must include at least one scope.")
        try:
            token = self._identities.impersonate(call.caller, call.words["email"])
        except Denied as denied:
            raise ServiceError(403, str(denied)) from None
        until = datetime.now(UTC) + timedelta(seconds=LIFETIME_S)
        return {"accessToken": token, "expireTime": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
