"""Access decisions of Identity-Aware Proxy in front of a Cloud Run service.

Source: IAP documentation, "Programmatic authentication" (header, claims of a token that a service account
signed, at most an hour); GoogleCloudPlatform/python-docs-samples iap (iap_generate_self_signed_jwt). Observed
in front of Cloud Run: the proxy's own OAuth client accepts no other token, the audience is the address with
`/*` or that of the request, and the texts of errors, except that for expired tokens. Not emulated: the login
of browsers, and context-aware access.
"""

import fnmatch
import time
from collections.abc import Mapping
from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.iam_bindings import allowed
from rehearsal.dataplane.gcp.identity import Caller, account_caller
from rehearsal.dataplane.gcp.signing import SigningKeys, UntrustedError
from rehearsal.gcp import service_agents

GENERATED = {"X-Goog-IAP-Generated-Response": "true", "Content-Type": "text/html"}
_VISIT, _INVOKE = "iap.webServiceVersions.accessViaIAP", "run.routes.invoke"
_LONGEST_S, _SKEW_S = 3600, 30
_LOGIN = "https://accounts.google.com/o/oauth2/v2/auth"


class IapDeniedError(Exception):
    """Response of the proxy in place of the service's."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers


def judge(state: State, keys: SigningKeys, service: Record, url: str, headers: Mapping[str, str]) -> None:
    """Raise IapDeniedError unless a request of `url` may pass; names of headers are in lower case."""
    shown = headers.get("proxy-authorization") or headers.get("authorization", "")
    token = shown.removeprefix("Bearer ")
    if not token:
        raise _refused(302, "Invalid IAP credentials: empty token", Location=_LOGIN)
    try:
        claims = keys.verified(token)
        _check(claims, url)
    except UntrustedError as error:
        raise _refused(401, f"Invalid IAP credentials: {error}") from None
    email = str(claims["iss"])
    if not _may(state, account_caller(email), _VISIT, service):
        raise _refused(403, f"You don't have access. {email} may not open this app.")
    number = project_number(str(service.outputs["project"]))
    if not _may(state, account_caller(service_agents.email("iap.googleapis.com", number)), _INVOKE, service):
        text = "Your client does not have permission to get URL / from this server."  # Cloud Run's own
        raise IapDeniedError(403, text, {"Content-Type": "text/html"})


def _check(claims: Mapping[str, Any], url: str) -> None:
    """Raise UntrustedError unless the claims are for this address and now."""
    now, until, since = time.time(), claims.get("exp"), claims.get("iat")
    if claims.get("sub") != claims.get("iss"):
        raise UntrustedError("Invalid bearer token. Invalid JWT subject.")
    # Neither an address without a path nor another address of the same service is valid.
    if not fnmatch.fnmatchcase(url.partition("?")[0], str(claims.get("aud")).replace("[", "[[]")):
        raise UntrustedError("Invalid bearer token. Invalid JWT audience.")
    if not isinstance(until, int) or not isinstance(since, int):
        raise UntrustedError("Invalid bearer token. Invalid JWT times.")
    if not since - _SKEW_S <= now <= until or until - since > _LONGEST_S:
        raise UntrustedError("Invalid bearer token. JWT is expired or good for more than an hour.")


def _may(state: State, caller: Caller, permission: str, service: Record) -> bool:
    return allowed(state, caller.members, permission, service, service.id)


def _refused(status: int, text: str, **headers: str) -> IapDeniedError:
    return IapDeniedError(status, text, {**GENERATED, **headers})
