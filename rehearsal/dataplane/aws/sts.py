"""STS for boto3: GetCallerIdentity."""

from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from rehearsal.dataplane.aws.http import XML, Request, Response, ServiceError, query_refusal

_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


class Sts:
    """Returns the caller by the credentials of the request."""

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        form = parse_qs(request.body.read().decode())
        if form.get("Action") != ["GetCallerIdentity"]:
            raise ServiceError("InvalidAction", f"{form.get('Action')} is not emulated")
        caller = request.caller
        text = (
            f'<GetCallerIdentityResponse xmlns="{_NAMESPACE}"><GetCallerIdentityResult>'
            f"<Arn>{escape(caller.arn)}</Arn><UserId>AROA:{escape(caller.session)}</UserId>"
            f"<Account>{caller.account}</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
        )
        return Response(200, text.encode(), XML)

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        return query_refusal(error, _NAMESPACE)
