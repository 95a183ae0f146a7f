"""A loopback HTTP server with the AWS services that boto3 calls in pods, in jobs and for an operator.

Requests are routed to the service that their signature names. Secrets Manager, STS, S3 and the endpoint with
the credentials of a role are built in; others are passed in. A caller is identified by the access key and
session token; only requests to MLflow Apps have their signatures checked (`signatures`).
"""

import logging
import re
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rehearsal.core.state import State
from rehearsal.dataplane.aws.http import FilePart, Request, Response, Service, ServiceError, json_response
from rehearsal.dataplane.aws.identity import Caller, Denied, Identities
from rehearsal.dataplane.aws.s3.bodies import body_of
from rehearsal.dataplane.aws.s3.rest import S3
from rehearsal.dataplane.aws.secrets_manager import SecretsManager
from rehearsal.dataplane.aws.sts import Sts
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer

_LOG = logging.getLogger("rehearsal")
CREDENTIALS_PATH = "/v1/credentials"
_SIGNED = re.compile(r"(?:Credential=)?([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")


class Dataplane:
    """The server, running in threads of this process from the start until `stop`.

    `services` are further ones, by their names in signatures. Raises OSError when `port` is taken.
    """

    def __init__(self, state: State, services: Mapping[str, Service] | None = None, *, port: int = 0) -> None:
        self.identities = Identities(state)
        self.services: dict[str, Service] = {
            "secretsmanager": SecretsManager(state),
            "sts": Sts(self.identities),
            "s3": S3(state),
            **(services or {}),
        }
        self._server = LoopbackServer(_Handler, port=port, dataplane=self)

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://{self._server.host}"

    def stop(self) -> None:
        """Close the port."""
        self._server.stop()

    def service(self, name: str) -> Service:
        """A service by the name in signatures. Raises ServiceError when it is not emulated."""
        if name not in self.services:
            raise ServiceError("UnknownOperationException", f"the service {name} is not emulated")
        return self.services[name]


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    dataplane: Dataplane

    def do_GET(self) -> None:
        """Serve the credentials of a program, or a request for a service."""
        if self.path == CREDENTIALS_PATH:
            self._credentials()
        else:
            self._serve()

    def do_POST(self) -> None:
        """See `_serve`."""
        self._serve()

    do_PUT = do_HEAD = do_DELETE = do_POST  # noqa: N815 - names of the base class

    def _credentials(self) -> None:
        try:
            token = self.headers.get("Authorization", "")
            self._send(json_response(self.dataplane.identities.credentials(token)))
        except Denied as error:
            content = {"code": "AccessDeniedException", "message": str(error)}
            self._send(json_response(content, 400))

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = body_of(headers, self.rfile)
        service: Service | None = None
        try:
            caller, region, name = self._caller(headers, query)
            service = self.dataplane.service(name)
            request = Request(self.command, parts.path, query, headers, body, caller, region, parts.query)
            response = service.answer(request)
        except ServiceError as error:
            plain = json_response({"__type": error.code, "message": error.message}, error.status)
            response = service.refusal(error) if service else plain
        except Exception:
            _LOG.exception("%s %s", self.command, parts.path)
            failure = ServiceError("InternalFailure", "The rehearsal failed; see its log.", 500)
            response = service.refusal(failure) if service else json_response({"__type": failure.code}, 500)
        body.drain()  # the next request of this connection follows it
        self._send(response)

    def _caller(self, headers: Mapping[str, str], query: Mapping[str, str]) -> tuple[Caller, str, str]:
        found = _SIGNED.search(headers.get("authorization") or query.get("X-Amz-Credential", ""))
        if found is None:
            raise ServiceError(
                "MissingAuthenticationTokenException", "Request is missing Authentication Token", 403
            )
        token = headers.get("x-amz-security-token") or query.get("X-Amz-Security-Token", "")
        caller = self.dataplane.identities.caller(found[1], token)
        if caller is None:
            raise ServiceError(
                "UnrecognizedClientException", "The security token included in the request is invalid."
            )
        return caller, found[2], found[3]

    def _send(self, response: Response) -> None:
        body: Any = response.body
        length = body.length if isinstance(body, FilePart) else len(body)
        self.send_response(response.status)
        for name, value in {"Content-Length": str(length), **response.headers}.items():
            self.send_header(name, value)
        self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
        self.end_headers()
        if self.command == "HEAD":
            return
        for piece in body.pieces() if isinstance(body, FilePart) else (body,):
            self.wfile.write(piece)
