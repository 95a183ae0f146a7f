"""Tokens: IAM Credentials (generateAccessToken, signJwt), and the login of the rehearsal's user.

Source: the discovery document of iamcredentials v1; RFC 6749, section 6 (refreshing an access token).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.identity import LIFETIME_S, Denied, GoogleIdentities
from rehearsal.dataplane.gcp.signing import UnsignableError


class Credentials:
    """See `http.Api`."""

    def __init__(self, identities: GoogleIdentities) -> None:
        self._identities = identities

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        account = r"v1/projects/-/serviceAccounts/(?P<email>[^/:]+)"
        return (
            Method("POST", f"{account}:generateAccessToken", self._impersonate),
            Method("POST", f"{account}:signJwt", self._sign),
        )

    def _impersonate(self, call: ApiCall) -> Answer:
        if not call.body.get("scope"):
            raise ServiceError(400, "The request must include at least one scope.")
        try:
            token = self._identities.impersonate(call.caller, call.parts["email"])
        except Denied as denied:
            raise ServiceError(403, str(denied)) from None
        until = datetime.now(UTC) + timedelta(seconds=LIFETIME_S)
        return {"accessToken": token, "expireTime": until.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _sign(self, call: ApiCall) -> Answer:
        try:
            key, token = self._identities.sign(
                call.caller, call.parts["email"], str(call.body.get("payload") or "")
            )
        except Denied as denied:
            raise ServiceError(403, str(denied)) from None
        except UnsignableError as error:
            raise ServiceError(400, str(error)) from None
        return {"keyId": key, "signedJwt": token}
