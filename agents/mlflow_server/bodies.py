"""Bodies of requests to the MLflow server: how much is read, and what they must not say.

MLflow reads a whole body before it looks at the login (mlflow 3.17.2, `server/fastapi_app.py`), whatever its
size, and a JSON document takes twenty times its length in memory. So bodies are bounded here, besides uploads
of artifacts, which MLflow streams.
"""

import asyncio
import json
import re
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = list[tuple[bytes, bytes]]

BELOW = r"/(?:ajax-)?api/[23]\.0/mlflow/"
# Tags of a trace that name where its data is (mlflow 3.17.2, tracing/constant.py and utils/mlflow_tags.py).
# The server sets them. From a client they would make it read any file or object that it can.
LOCATIONS = ("mlflow.artifactLocation", "mlflow.trace.archiveLocation", "mlflow.trace.spansLocation")

# MLflow's client sends at most 1 MB of JSON (mlflow 3.17.2, `utils/validation.py`) and 10 MB of a file to
# `upload-artifact`; exporters of OpenTelemetry send spans as protocol buffers.
JSON_BYTES, OTHER_BYTES = 4 * 2**20, 12 * 2**20
# Bodies that a worker holds at once, of one user and of all.
USER_BYTES, WORKER_BYTES = 2 * OTHER_BYTES, 6 * OTHER_BYTES

_EXPERIMENT = re.compile(BELOW + "experiments/create")
_SPANS = "/v1/traces"  # OpenTelemetry: JSON or protocol buffers
_TRACES = re.compile(f"(?:{BELOW}traces(?:/.*)?|{_SPANS})")
_STREAMED = re.compile(r"/(?:ajax-)?api/2\.0/mlflow-artifacts/artifacts/.+", re.DOTALL)
_UPLOAD = re.compile(BELOW + "upload-artifact")
_ABOUT_BODIES = (b"content-encoding", b"content-length", b"transfer-encoding")
_TOO_LARGE = "the body has more than {} bytes: send less at a time"
_PROTOCOL_BUFFERS = b"application/x-protobuf"


class RefusedError(Exception):
    """Reason why a request does not reach MLflow; `status` of HTTP and `code` of MLflow."""

    status, code = 403, "PERMISSION_DENIED"


class TooLargeError(RefusedError):
    """A body over its limit."""

    status, code = 413, "REQUEST_LIMIT_EXCEEDED"


class BusyError(RefusedError):
    """Too many bodies at once; clients of MLflow and of OpenTelemetry try again."""

    status, code = 429, "RESOURCE_EXHAUSTED"


class Bodies:
    """The bodies that this worker holds."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._turn = asyncio.Lock()  # one search at a time: it takes memory

    def request(self, user: str) -> "Held":
        """The body of a request of this user. Use it in `with`: it is held for that long."""
        return Held(self._held, self._turn, user)


class Held:
    """The body of one request."""

    def __init__(self, all_held: "Counter[str]", turn: asyncio.Lock, user: str) -> None:
        self._all, self._turn, self._user, self._bytes = all_held, turn, user, 0

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        self._all[self._user] -= self._bytes
        self._all += Counter()  # in place: without users that hold nothing

    async def checked(self, path: str, headers: Headers, receive: Receive) -> tuple[Headers, Receive]:
        """Headers and body for MLflow, without a location that the client chose. Raises RefusedError."""
        if _STREAMED.fullmatch(path) or not (_searched(path) or has_body(headers)):
            return headers, receive
        most = most_bytes(path, headers)
        packed = _compression(path, headers)
        if any(name == b"content-length" and int(value) > most for name, value in headers):
            raise TooLargeError(_TOO_LARGE.format(most))
        body = await self._read(receive, most)
        if packed or _searched(path):
            async with self._turn:
                if packed:
                    body = await asyncio.to_thread(_unpacked, body, most)
                    self._hold(len(body))
                await asyncio.to_thread(_search, path, headers, body)
        kept = [one for one in headers if one[0] not in _ABOUT_BODIES]
        return [*kept, (b"content-length", str(len(body)).encode())], _again(body, receive)

    async def _read(self, receive: Receive, most: int) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise RefusedError("the client disconnected")
            part = message.get("body", b"")
            if len(body) + len(part) > most:
                raise TooLargeError(_TOO_LARGE.format(most))
            self._hold(len(part))
            body += part
            if not message.get("more_body", False):
                return bytes(body)

    def _hold(self, count: int) -> None:
        if self._all[self._user] + count > USER_BYTES or self._all.total() + count > WORKER_BYTES:
            raise BusyError("too many large requests at once: try again")
        self._all[self._user] += count
        self._bytes += count


def most_bytes(path: str, headers: Headers) -> int:
    """Limit of a body that is no upload of an artifact."""
    return OTHER_BYTES if _spans(path, headers) or _UPLOAD.fullmatch(path) else JSON_BYTES


def plain(path: str, headers: Headers, body: bytes) -> bytes:
    """The body without compression, for a server that is not behind `Held`. Raises RefusedError."""
    if _compression(path, headers):
        body = _unpacked(body, most_bytes(path, headers))
    _search(path, headers, body)
    return body


def _searched(path: str) -> bool:
    return bool(_EXPERIMENT.fullmatch(path) or _TRACES.fullmatch(path))


def _spans(path: str, headers: Headers) -> bool:
    """True for spans as protocol buffers."""
    kinds = {value.partition(b";")[0].strip() for name, value in headers if name == b"content-type"}
    return path == _SPANS and kinds == {_PROTOCOL_BUFFERS}


def has_body(headers: Headers) -> bool:
    """True where a request may have a body (RFC 9112, section 6)."""
    given = [(name, value) for name, value in headers if name in _ABOUT_BODIES]
    return any(name == b"transfer-encoding" or value.strip(b"0") for name, value in given)


def _compression(path: str, headers: Headers) -> bool:
    """True for a body with gzip. Raises RefusedError for another encoding, or on a route of no spans."""
    given = [value for name, value in headers if name == b"content-encoding" and value != b"identity"]
    if given and (path != _SPANS or given != [b"gzip"]):
        raise RefusedError(
            "this Content-Encoding is not supported here: send the body without (exporters of OpenTelemetry:"
            " `compression: gzip` or `none`)"
        )
    return bool(given)


def _unpacked(body: bytes, most: int) -> bytes:
    """The one member of a gzip stream. Raises RefusedError."""
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = stream.decompress(body, most + 1)
    except zlib.error as error:
        raise RefusedError(f"the body is not gzip: {error}") from error
    if len(plain) > most:
        raise TooLargeError(_TOO_LARGE.format(most))
    if not stream.eof or stream.unused_data:
        raise RefusedError("the body is not one complete gzip stream")
    return plain


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` that begins with a body that was read."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _search(path: str, headers: Headers, body: bytes) -> None:
    """Raise RefusedError where a client chose a location, or for a document that is not JSON."""
    if not _searched(path):
        return
    created = bool(_EXPERIMENT.fullmatch(path))
    attributes = [f"mlflow.traceTag.{tag}" for tag in LOCATIONS]  # of a span, which become tags of its trace
    tags = {*LOCATIONS, *attributes}

    def seen(items: list[tuple[str, Any]]) -> None:  # returns nothing, so that the document is not kept
        for key, value in items:
            for one in value if isinstance(value, list) else (value,):
                if created and key in ("artifact_location", "artifactLocation") and one:
                    raise RefusedError(
                        "artifacts are stored in the stack's bucket: leave out artifact_location"
                    )
                if not created and (key in tags or (isinstance(one, str) and one in tags)):
                    raise RefusedError(f"the server sets the tags {', '.join(LOCATIONS)}: leave them out")

    if _spans(path, headers):
        if any(attribute.encode() in body for attribute in attributes):
            raise RefusedError(f"the server sets the tags {', '.join(LOCATIONS)}: leave them out")
        return
    try:
        value = json.loads(body, object_pairs_hook=seen) if body else None
        if isinstance(value, str):  # MLflow decodes such a document once more
            json.loads(value, object_pairs_hook=seen)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the body is not JSON: {type(error).__name__}") from error
