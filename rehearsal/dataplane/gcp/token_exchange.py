"""Google's STS: exchanges an identity of AWS for a token of a workload identity pool.

Source: STS REST reference, v1.token; IAM documentation, "Workload Identity Federation with other clouds" (the
signed request for AWS, default mapping, 127 bytes of google.subject); googleapis/google-auth-library-python
google/auth/aws.py. Errors as in public logs of Google's authentication libraries.
"""

import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from infra.cel import CelError, CelNode, constant, parse, path
from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws import http as aws
from rehearsal.dataplane.aws import signatures
from rehearsal.dataplane.aws.identity import Caller as AwsCaller
from rehearsal.dataplane.aws.identity import Identities
from rehearsal.dataplane.gcp.http import Answer, ServiceError
from rehearsal.dataplane.gcp.identity import ANYBODY, LIFETIME_S, Caller, GoogleIdentities

PATH = "/v1/token"
_POOL = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
_PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
_FORM = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
}
_AUDIENCE = re.compile(
    r"//iam\.googleapis\.com/(?P<pool>projects/(?P<number>\d+)/locations/global/workloadIdentityPools/(?P<id>[a-z0-9-]+))"
    r"/providers/(?P<provider>[a-z0-9-]+)"
)
_HOST = re.compile(r"sts(?:\.(?P<region>[a-z0-9-]+))?\.amazonaws\.com")
_TARGET = "x-goog-cloud-target-resource"
_ASKED = {"Action": "GetCallerIdentity", "Version": "2011-06-15"}
_VALID = timedelta(minutes=15)
_LONGEST = 127  # bytes of google.subject
_DEFAULT = {
    "google.subject": "assertion.arn",
    "attribute.aws_role": "assertion.arn.contains('assumed-role')"
    " ? assertion.arn.extract('{account_arn}assumed-role/') + 'assumed-role/'"
    " + assertion.arn.extract('assumed-role/{role_name}/') : assertion.arn",
}


class TokenExchange:
    """The method `token`, which needs no login."""

    def __init__(self, state: State, identities: GoogleIdentities, aws_identities: Identities | None) -> None:
        self._state, self._identities, self._aws = state, identities, aws_identities

    def answer(self, form: Mapping[str, str]) -> Answer:
        """The response to a form. Raises ServiceError."""
        for name, value in _FORM.items():
            if form.get(name) != value:
                raise _refused("invalid_request", f"Invalid value for {name}.")
        if not form.get("scope"):
            raise _refused("invalid_scope", "Scope(s) must be provided.")
        audience = form.get("audience", "")
        pool, provider = self._provider(audience)
        caller = self._caller(form.get("subject_token", ""), audience)
        if str((provider.inputs.get("aws") or {}).get("accountId")) != caller.account:
            raise _refused("unauthorized_client", _REJECTED)
        token = self._identities.federated(_federated(pool, provider, caller))
        return {
            "access_token": token,
            "issued_token_type": _FORM["requested_token_type"],
            "token_type": "Bearer",
            "expires_in": LIFETIME_S,
        }

    def _provider(self, audience: str) -> tuple[str, Record]:
        """The name of the pool and the provider of an audience."""
        named = _AUDIENCE.fullmatch(audience)
        for pool in self._state.find(type=_POOL) if named else ():
            if not _is_named(
                pool, "workloadIdentityPoolId", named and named["id"], named and named["number"]
            ):
                continue
            for one in self._state.find(type=_PROVIDER):
                of_pool = one.inputs.get("workloadIdentityPoolId") == pool.inputs["workloadIdentityPoolId"]
                if (
                    named
                    and of_pool
                    and _is_named(one, "workloadIdentityPoolProviderId", named["provider"], named["number"])
                    and not pool.inputs.get("disabled")
                    and not one.inputs.get("disabled")
                ):
                    return named["pool"], one
        raise _refused("invalid_target", _NO_TARGET)

    def _caller(self, token: str, audience: str) -> AwsCaller:
        """The caller of the signed request in a subject token, as STS of AWS would name it."""
        try:
            asked = json.loads(unquote(token))
            headers = {str(row["key"]).lower(): str(row["value"]) for row in asked["headers"]}
            parts = urlsplit(str(asked["url"]))
            made = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except (KeyError, TypeError, ValueError) as error:
            raise _refused("invalid_request", f"Unable to parse the subject token: {error}") from None
        if headers.get(_TARGET, "").removeprefix("https:") != audience:
            raise _refused("invalid_grant", f"The header {_TARGET} is not the audience.")
        host = _HOST.fullmatch(parts.netloc)
        if host is None or asked.get("method") != "POST" or dict(parse_qsl(parts.query)) != _ASKED:
            raise _refused("invalid_request", "The subject token is no request for GetCallerIdentity.")
        caller = self._signed(parts.query, headers, host["region"] or "us-east-1")
        if caller is None or abs(datetime.now(UTC) - made) > _VALID:
            raise _refused("invalid_grant", "Received invalid credential: AWS rejected the request.")
        return caller

    def _signed(self, query: str, headers: Mapping[str, str], region: str) -> AwsCaller | None:
        if self._aws is None:
            return None
        request = aws.Request(
            "POST", "/", dict(parse_qsl(query)), headers, io.BytesIO(), AwsCaller("", ""), region, query
        )
        key = signatures.access_key(request)
        scoped = f"/{region}/sts/aws4_request" in headers.get("authorization", "")
        try:
            signatures.check(request, b"", self._aws.secret(key))
        except aws.ServiceError:
            return None
        return self._aws.caller(key, headers.get("x-amz-security-token", "")) if scoped else None


_REJECTED = "The given credential is rejected by the attribute condition."
_NO_TARGET = (
    'The target service indicated by the "audience" parameters is invalid. This might either be because the'
    " pool or provider is disabled or deleted or because it doesn't exist."
)


def _is_named(record: Record, key: str, name: str | None, number: str | None) -> bool:
    project = str(record.outputs.get("project") or record.scope)
    return record.inputs.get(key) == name and project_number(project) == number


def _federated(pool: str, provider: Record, caller: AwsCaller) -> Caller:
    """The identity in a pool of a caller of AWS. Raises ServiceError where the provider does not admit it."""
    claims = {"arn": caller.arn, "account": caller.account, "userid": f"AROA:{caller.session}"}
    known: dict[tuple[str, ...], object] = {("assertion", key): value for key, value in claims.items()}
    mapping = provider.inputs.get("attributeMapping") or _DEFAULT
    mapped = {key: _value(str(expression), known) for key, expression in mapping.items()}
    subject = str(mapped.get("google.subject") or "")
    if not subject or len(subject.encode()) > _LONGEST:
        raise _refused(
            "invalid_request",
            f"The size of mapped attribute google.subject exceeds the {_LONGEST} bytes limit.",
        )
    condition = provider.inputs.get("attributeCondition")
    known |= {tuple(key.split(".")): value for key, value in mapped.items()}
    if condition and _value(str(condition), known) is not True:
        raise _refused("unauthorized_client", _REJECTED)
    start = f"iam.googleapis.com/{pool}"
    attributes = [
        f"principalSet://{start}/{key}/{value}"
        for key, value in mapped.items()
        if key.startswith("attribute.")
    ]
    name = f"principal://{start}/subject/{subject}"
    return Caller(name, (name, *attributes, f"principalSet://{start}/*", *ANYBODY))


def _value(expression: str, known: Mapping[tuple[str, ...], object]) -> Any:
    """The value of an expression; not a string or a boolean where this package cannot evaluate it."""
    try:
        return constant(_filled(parse(expression), known))
    except CelError:
        return None


def _filled(node: CelNode, known: Mapping[tuple[str, ...], object]) -> CelNode:
    names = tuple(path(node))
    if names in known:
        return CelNode("value", value=known[names])
    return CelNode(node.kind, tuple(_filled(part, known) for part in node.parts), node.value)


class _StsError(ServiceError):
    """An error of OAuth 2.0 (RFC 6749, section 5.2), which STS has instead of google.rpc.Status."""

    @property
    def body(self) -> Answer:
        """See `ServiceError`."""
        return {"error": self.code, "error_description": self.message}


def _refused(code: str, message: str) -> ServiceError:
    return _StsError(401 if code == "unauthorized_client" else 400, message, code)
