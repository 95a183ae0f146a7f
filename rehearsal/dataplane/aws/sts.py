"""STS for boto3 and programs of the stacks: GetCallerIdentity and AssumeRole."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from rehearsal.dataplane.aws import signatures
from rehearsal.dataplane.aws.http import XML, Request, Response, ServiceError, query_refusal
from rehearsal.dataplane.aws.identity import Caller, Denied, Identities

# botocore 1.44.5 sts/2011-06-15 roleSessionNameType, roleDurationSecondsType.
_SESSION = re.compile(r"[\w+=,.@-]{2,64}")
_SHORTEST_S, _CHAINED_S = 900, 3600
_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


class Sts:
    """Returns the caller by the credentials of the request, and those of a role that it may assume."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        form = {**request.query, **dict(parse_qsl(request.body.read().decode()))}
        if "X-Amz-Signature" in request.query:
            self._check(request)
        if form.get("Action") == "GetCallerIdentity":
            caller = request.caller
            fields = {"Arn": caller.arn, "UserId": f"AROA:{caller.session}", "Account": caller.account}
            return _result("GetCallerIdentity", _elements(fields))
        if form.get("Action") == "AssumeRole":
            return self._assumed(request, form)
        raise ServiceError("InvalidAction", f"{form.get('Action')} is not emulated")

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        return query_refusal(error, _NAMESPACE)

    def _check(self, request: Request) -> None:
        """Raise ServiceError unless the query of a presigned request was signed with the caller's secret."""
        host = request.headers.get("host", "")
        key = request.query.get("X-Amz-Credential", "").split("/")[0]
        url = f"http://{host}{request.path}?{request.query_text}"
        try:
            fits = signatures.is_presigned_by(url, request.headers, self._identities.secret(key))
        except ValueError as error:
            raise ServiceError("IncompleteSignature", str(error)) from None
        if not fits:
            raise ServiceError("SignatureDoesNotMatch", signatures.REFUSED, 403)

    def _assumed(self, request: Request, form: Mapping[str, str]) -> Response:
        try:
            role, session = form["RoleArn"], form["RoleSessionName"]
            seconds = int(form.get("DurationSeconds", "3600"))
        except (KeyError, ValueError) as error:
            raise ServiceError("ValidationError", f"{error} is required") from None
        if not _SESSION.fullmatch(session):
            raise ServiceError("ValidationError", f"roleSessionName does not satisfy {_SESSION.pattern}")
        if not _SHORTEST_S <= seconds <= _CHAINED_S:
            # "roles assumed by role chaining": IAM User Guide, "Methods to assume a role".
            what = f"DurationSeconds {seconds} is not within {_SHORTEST_S} and {_CHAINED_S} seconds"
            raise ServiceError("ValidationError", f"{what}, the limit of a role that another role assumes")
        try:
            made = self._identities.assumed(request.caller, role, session, seconds)
        except Denied as error:
            raise ServiceError("AccessDenied", str(error), 403) from None
        user = _elements({"AssumedRoleId": f"AROA:{session}", "Arn": Caller(role, session).arn})
        keys = _elements(
            {
                "AccessKeyId": made["AccessKeyId"],
                "SecretAccessKey": made["SecretAccessKey"],
                "SessionToken": made["Token"],
                "Expiration": made["Expiration"],
            }
        )
        return _result(
            "AssumeRole", f"<AssumedRoleUser>{user}</AssumedRoleUser><Credentials>{keys}</Credentials>"
        )


def _elements(fields: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())


def _result(action: str, content: str) -> Response:
    inside = f"<{action}Result>{content}</{action}Result>"
    text = f'<{action}Response xmlns="{_NAMESPACE}">{inside}</{action}Response>'
    return Response(200, text.encode(), XML)
