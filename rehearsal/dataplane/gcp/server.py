"""A loopback HTTP server with the Google REST APIs that pods, jobs and an operator call.

Secret Manager, STS, IAM Credentials, Pub/Sub and Cloud Scheduler are built in; others are passed in. Every
other method returns an error.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, urlsplit

from rehearsal.core.state import State
from rehearsal.dataplane.aws.identity import Identities
from rehearsal.dataplane.gcp import token_exchange
from rehearsal.dataplane.gcp.credentials import Credentials
from rehearsal.dataplane.gcp.http import Answer, Api, ApiCall, Content, ServiceError, find
from rehearsal.dataplane.gcp.identity import LIFETIME_S, GoogleIdentities, PodIdentity
from rehearsal.dataplane.gcp.metadata import MetadataServer
from rehearsal.dataplane.gcp.pubsub import PubSub
from rehearsal.dataplane.gcp.scheduler import CloudScheduler
from rehearsal.dataplane.gcp.secret_manager import SecretManager
from rehearsal.dataplane.gcp.token_exchange import TokenExchange
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer
from rehearsal.service_ports import LOGIN_PATH

_MOST = 256 << 20  # bytes of a request's body


class GooglePlane:
    """The APIs, and a metadata server for each service account of pods and jobs, until `stop`.

    `apis` are further ones. Raises OSError when `port` is taken.
    """

    def __init__(
        self, state: State, apis: Sequence[Api] = (), *, port: int = 0, aws: Identities | None = None
    ) -> None:
        """`aws`: identities of AWS, which workload identity pools may admit."""
        self.identities = GoogleIdentities(state)
        self._exchange = TokenExchange(state, self.identities, aws)
        self.pubsub = PubSub(state)
        self._apis: list[Api] = [
            SecretManager(state),
            Credentials(self.identities),
            self.pubsub,
            CloudScheduler(state, self.identities, self.answer),
            *apis,
        ]
        self._servers: dict[PodIdentity, MetadataServer] = {}
        self._lock = threading.Lock()
        self._server = LoopbackServer(_Handler, port=port, google=self)

    @property
    def url(self) -> str:
        """URL of the APIs, with a final slash like Google's own."""
        return f"http://{self._server.host}/"

    def metadata_host(self, identity: PodIdentity) -> str:
        """The metadata server of the programs of a service account."""
        with self._lock:
            if identity not in self._servers:
                self._servers[identity] = MetadataServer(identity, self.identities)
            return self._servers[identity].host

    def stop(self) -> None:
        """Close every port."""
        with self._lock:
            for server in self._servers.values():
                server.stop()
            self._servers.clear()
        self._server.stop()

    def answer(self, verb: str, target: str, content: bytes, headers: Mapping[str, str]) -> Answer | Content:
        """The response to one request for a path with its query. Raises ServiceError."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if verb == "POST" and parts.path == LOGIN_PATH:
            return self._login(dict(parse_qsl(content.decode(errors="replace"))))
        if verb == "POST" and parts.path == token_exchange.PATH:
            return self._exchange.answer(dict(parse_qsl(content.decode(errors="replace"))))
        caller = self.identities.caller(headers.get("authorization", ""))
        if caller is None:
            message = "Request had invalid authentication credentials. Expected OAuth 2 access token."
            raise ServiceError(401, message)
        path = unquote(parts.path).lstrip("/")
        found = find(self._apis, verb, path)
        if found is None:
            raise ServiceError(404, f"Method not found: {verb} {path} is not emulated")
        method, path_parts = found
        return method.function(ApiCall(path_parts, query, content, caller, headers))

    def _login(self, form: Mapping[str, str]) -> Answer:
        """A token for the user of the rehearsal (RFC 6749, section 6)."""
        token = self.identities.operator(form.get("refresh_token", ""))
        if token is None:
            raise ServiceError(401, "The refresh token is not valid.")
        return {"access_token": token, "expires_in": LIFETIME_S, "token_type": "Bearer"}


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    google: GooglePlane

    def do_GET(self) -> None:
        """Serve any method."""
        size = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            if size > _MOST:
                self.close_connection = True  # the rest of the body must not be parsed as a request
                raise ServiceError(413, f"A rehearsal takes at most {_MOST} bytes at a time.", "OUT_OF_RANGE")
            answer = self.google.answer(self.command, self.path, self.rfile.read(size), headers)
        except ServiceError as error:
            answer = Content(json.dumps(error.body).encode(), _JSON, error.status)
        self._reply(answer if isinstance(answer, Content) else Content(json.dumps(answer).encode(), _JSON))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of the base class

    def _reply(self, content: Content) -> None:
        self.send_response(content.status)
        if content.status != 204:  # No Content
            self.send_header("Content-Type", content.kind)
            self.send_header("Content-Length", str(len(content.data)))
        self.end_headers()
        self.wfile.write(content.data)


_JSON = "application/json; charset=UTF-8"
