"""A loopback HTTP server that speaks enough of Google's REST APIs for programs inside pods.

Secret Manager (access, add, get, list, enable, disable and destroy versions), IAM Credentials
(generateAccessToken) and Pub/Sub (publish). Every other method is answered with an error that names it.
Source: the discovery documents of secretmanager v1, iamcredentials v1 and pubsub v1 (paths, fields).
"""

import base64
import binascii
import json
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from infra.engine.http_peers import OwnUserHttpServer
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.google.bindings import allowed
from rehearsal.dataplane.google.identity import LIFETIME_S, Caller, Denied, GoogleIdentities, PodIdentity
from rehearsal.dataplane.google.metadata import MetadataServer
from rehearsal.dataplane.google.secrets import ENABLED, GoogleSecrets, Version

Answer = Mapping[str, Any]
# What pods published, by topic: document space.
MESSAGES = "pubsub-message"
_TOPIC = "gcp:pubsub/topic:Topic"
_SECRET = r"v1/(?P<secret>projects/[^/]+/secrets/[^/:]+)"  # noqa: S105 - a path
_VERSION = rf"{_SECRET}/versions/(?P<version>[^/:]+)"
_CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_BYTES = 65_536  # of a version's payload
_PART = 10_000_000  # of a request's body


class ServiceError(Exception):
    """An error in the service's own terms."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        self.status, self.message, self.code = status, message, code or _CODES[status]
        super().__init__(f"{self.code}: {message}")


class GooglePlane:
    """The APIs, and a metadata server for each service account of pods, until `stop`."""

    def __init__(self, state: State) -> None:
        self.identities = GoogleIdentities(state)
        self._state, self._secrets = state, GoogleSecrets(state)
        self._servers: dict[PodIdentity, MetadataServer] = {}
        self._lock = threading.Lock()
        plane = self

        class Handler(_Handler):
            google = plane

        self._server = OwnUserHttpServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="google", daemon=True).start()

    @property
    def url(self) -> str:
        """Where the APIs listen, with the slash that Google's own addresses have."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def metadata_host(self, identity: PodIdentity) -> str:
        """The metadata server of the pods of a service account."""
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
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Answer, caller: Caller) -> Answer:
        """The answer to one call. Raises ServiceError."""
        for verb, pattern, function in _METHODS:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                return function(self, found.groupdict(), body, caller)
        raise ServiceError(404, f"Method not found: {method} {path} is not emulated")

    # -- Secret Manager --------------------------------------------------------------------------------

    def _access(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        secret = self._secret(words, "versions.access", caller, f"/versions/{words['version']}")
        version = self._version(secret, words)
        if version.state != ENABLED:
            raise ServiceError(
                400, f"Secret Version [{_named(secret, version)}] is in {version.state} state.", _FAILED
            )
        checksum = str(_crc32c(base64.b64decode(version.data)))
        return {
            "name": _named(secret, version),
            "payload": {"data": version.data, "dataCrc32c": checksum},
        }

    def _add(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        secret = self._secret(words, "versions.add", caller)
        payload = body.get("payload")
        data = payload.get("data") if isinstance(payload, Mapping) else None
        try:
            size = len(base64.b64decode(str(data or ""), validate=True))
        except binascii.Error:
            said = "Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed"
            raise ServiceError(400, said) from None
        if not data or size > _BYTES:
            raise ServiceError(400, f"The secret payload must have 1 to {_BYTES} bytes.")
        return self._shown(secret, self._secrets.add(secret, str(data)))

    def _get(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        secret = self._secret(words, "secrets.get", caller)
        return {"name": secret.outputs["name"], "createTime": secret.outputs.get("createTime")}

    def _list(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        secret = self._secret(words, "versions.list", caller)
        rows = [self._shown(secret, one) for one in reversed(self._secrets.versions(secret))]
        return {"versions": rows, "totalSize": len(rows)}

    def _describe(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        secret = self._secret(words, "versions.get", caller, f"/versions/{words['version']}")
        return self._shown(secret, self._version(secret, words))

    def _change(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        verb = words["verb"]
        secret = self._secret(words, f"versions.{verb}", caller, f"/versions/{words['version']}")
        version = self._version(secret, words)
        if version.state == "DESTROYED":
            raise ServiceError(
                400, f"Secret Version [{_named(secret, version)}] is in DESTROYED state.", _FAILED
            )
        state = {"enable": ENABLED, "disable": "DISABLED", "destroy": "DESTROYED"}[verb]
        return self._shown(secret, self._secrets.set_state(secret, version, state))

    def _secret(self, words: dict[str, str], verb: str, caller: Caller, below: str = "") -> Record:
        """The secret of a request whose caller may do that."""
        permission, name = f"secretmanager.{verb}", words["secret"]
        secret = self._secrets.find(name)
        full = f"{secret.outputs['name']}{below}" if secret else ""
        if secret is None or not allowed(self._state, caller.members, permission, secret, full):
            said = f"Permission '{permission}' denied for resource '{name}{below}' (or it may not exist)."
            raise ServiceError(403, said)
        return secret

    def _version(self, secret: Record, words: dict[str, str]) -> Version:
        version = self._secrets.version(secret, words["version"])
        if version is None:
            wanted = f"{secret.outputs['name']}/versions/{words['version']}"
            if words["version"] == "latest" or not self._secrets.versions(secret):
                raise ServiceError(404, f"Secret [{secret.outputs['name']}] not found or has no versions.")
            raise ServiceError(404, f"Secret Version [{wanted}] not found.")
        return version

    def _shown(self, secret: Record, version: Version) -> Answer:
        return {"name": _named(secret, version), "createTime": _now(), "state": version.state}

    # -- other APIs ------------------------------------------------------------------------------------

    def _impersonate(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        if not body.get("scope"):
            raise ServiceError(400, "The request must include at least one scope.")
        try:
            token = self.identities.impersonate(caller, words["email"])
        except Denied as denied:
            raise ServiceError(403, str(denied)) from None
        until = datetime.now(UTC) + timedelta(seconds=LIFETIME_S)
        return {"accessToken": token, "expireTime": until.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _publish(self, words: dict[str, str], body: Answer, caller: Caller) -> Answer:
        name = words["topic"]
        topic = next((one for one in self._state.find(type=_TOPIC) if one.id == name), None)
        if topic is None:
            raise ServiceError(404, f"Resource not found (resource={name.rpartition('/')[2]}).")
        if not allowed(self._state, caller.members, "pubsub.topics.publish", topic, name):
            raise ServiceError(403, "User not authorized to perform this action.")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise ServiceError(400, "The value for message_count is too small. You passed 0 in the request.")
        with self._state.transaction():
            kept = [*(self._state.document(MESSAGES, topic.id) or []), *messages]
            self._state.put_document(MESSAGES, topic.id, kept)
        first = len(kept) - len(messages) + 1
        return {"messageIds": [str(first + index) for index in range(len(messages))]}


_FAILED = "FAILED_PRECONDITION"
_Method = Callable[[GooglePlane, dict[str, str], Answer, Caller], Answer]
_METHODS: tuple[tuple[str, str, _Method], ...] = (
    ("GET", rf"{_VERSION}:access", GooglePlane._access),
    ("GET", _VERSION, GooglePlane._describe),
    ("POST", rf"{_VERSION}:(?P<verb>enable|disable|destroy)", GooglePlane._change),
    ("GET", rf"{_SECRET}/versions", GooglePlane._list),
    ("POST", rf"{_SECRET}:addVersion", GooglePlane._add),
    ("GET", _SECRET, GooglePlane._get),
    (
        "POST",
        r"v1/projects/-/serviceAccounts/(?P<email>[^/:]+):generateAccessToken",
        GooglePlane._impersonate,
    ),
    ("POST", r"v1/(?P<topic>projects/[^/]+/topics/[^/:]+):publish", GooglePlane._publish),
)


class _Handler(BaseHTTPRequestHandler):
    google: GooglePlane
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing: requests carry tokens and values of secrets."""

    def do_GET(self) -> None:
        """A reading method."""
        self._answer("GET", {})

    def do_POST(self) -> None:
        """A method with a body."""
        size = min(int(self.headers.get("Content-Length") or 0), _PART)
        try:
            body = json.loads(self.rfile.read(size) or b"{}")
        except ValueError:
            body = None
        self._answer("POST", body)

    def _answer(self, method: str, body: object) -> None:
        try:
            caller = self.google.identities.caller(self.headers.get("Authorization", ""))
            if caller is None:
                raise ServiceError(
                    401, "Request had invalid authentication credentials. Expected OAuth 2 access token."
                )
            if not isinstance(body, Mapping):
                raise ServiceError(400, "Invalid JSON payload received.")
            path = unquote(urlsplit(self.path).path).lstrip("/")
            self._reply(200, self.google.answer(method, path, body, caller))
        except ServiceError as error:
            told = {"code": error.status, "message": error.message, "status": error.code}
            self._reply(error.status, {"error": told})

    def _reply(self, status: int, content: Answer) -> None:
        encoded = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)


def _named(secret: Record, version: Version) -> str:
    return f"{secret.outputs['name']}/versions/{version.number}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _crc32c(data: bytes) -> int:
    """The checksum of RFC 3720, appendix B.4 (Castagnoli), bit by bit: payloads are small."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
