"""Bodies of requests of jobs: how much is read, and what they must not say.

All jobs of a node share the program that reads them, so each body has a limit before it is read. What they
say is checked as in front of MLflow's own server (`agents.mlflow_server`).
"""

import io
import json
import re
import threading
from email.message import Message
from io import BufferedIOBase
from typing import IO, Any, cast

from agents.mlflow_server import bodies, guard
from agents.mlflow_server.bodies import RefusedError, TooLargeError

_DIGITS = re.compile(r"[0-9]{1,16}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_VERSION = re.compile(bodies.BELOW + "model-versions/create")
_SOURCE = re.compile(guard.SOURCES)
_TURN = threading.Lock()  # one search at a time: it takes memory


class MalformedError(RefusedError):
    """A request that no client of HTTP sends."""

    status, code = 400, "INVALID_PARAMETER_VALUE"


class UploadStream:
    """The first bytes of a stream as a file for http.client; `left` of them are not read yet."""

    def __init__(self, stream: BufferedIOBase, length: int) -> None:
        self._stream, self.left = stream, length

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; empty at the end."""
        most = self.left if size < 0 else min(size, self.left)
        found = self._stream.read(most) if most else b""
        self.left -= len(found)
        return found


def content(path: str, headers: Message, stream: BufferedIOBase) -> bytes:
    """The body of a request of MLflow's API, without compression; `path` is unquoted. Raises RefusedError."""
    known = [(name.lower().encode(), value.lower().strip().encode()) for name, value in headers.items()]
    most = bodies.most_bytes(path, known)
    length = _length(headers)
    if length is None:
        found = _joined(stream, most)
    elif length > most:
        raise TooLargeError(f"the body has more than {most} bytes: send less at a time")
    else:
        found = _whole(stream, length)
    with _TURN:
        found = bodies.plain(path, known, found)
        if _VERSION.fullmatch(path):
            _check_source(found)
    return found


def artifact(headers: Message, stream: BufferedIOBase) -> tuple[IO[bytes], int]:
    """An upload and its length, as it comes. Raises RefusedError.

    Clients send empty files in chunks, so only small ones are taken in that form.
    """
    length = _length(headers)
    if length is None:
        found = _joined(stream, bodies.OTHER_BYTES)
        return io.BytesIO(found), len(found)
    return cast("IO[bytes]", UploadStream(stream, length)), length  # http.client reads it alone


def _length(headers: Message) -> int | None:
    """Length of a body; None for one in chunks."""
    lengths, codings = headers.get_all("Content-Length", []), headers.get_all("Transfer-Encoding", [])
    if codings:
        if lengths or [one.strip().lower() for one in codings] != ["chunked"]:
            raise MalformedError("Transfer-Encoding must be `chunked`, without Content-Length")
        return None
    if len(lengths) > 1 or (lengths and not _DIGITS.fullmatch(lengths[0].strip())):
        raise MalformedError("Content-Length must be one number of bytes")
    return int(lengths[0]) if lengths else 0


def _joined(stream: BufferedIOBase, most: int) -> bytes:
    """A body in chunks."""
    found = bytearray()
    while True:
        line = _CHUNK.fullmatch(stream.readline(256))
        if line is None:
            raise MalformedError("a chunk must begin with its size in hexadecimal digits")
        size = int(line[1], 16)
        if len(found) + size > most:
            raise TooLargeError(
                f"a body in chunks has at most {most} bytes here: send Content-Length, or less"
            )
        found += _whole(stream, size)
        # The last chunk may have trailers instead; the connection ends then.
        if not size:
            return bytes(found)
        if stream.read(2) != b"\r\n":
            raise MalformedError("a chunk is longer than its size")


def _whole(stream: BufferedIOBase, length: int) -> bytes:
    found = stream.read(length) if length else b""
    if len(found) != length:
        raise MalformedError("the body ended early")
    return found


def _check_source(body: bytes) -> None:
    """Raise RefusedError for a model version outside of MLflow's artifacts. The body is JSON."""

    def seen(items: list[tuple[str, Any]]) -> None:
        for key, value in items:
            if key == "source" and not (isinstance(value, str) and _SOURCE.search(value)):
                raise RefusedError(
                    "source of a model version must begin with runs:/, models:/ or mlflow-artifacts:/"
                )

    try:
        value = json.loads(body or b"null", object_pairs_hook=seen)
        if isinstance(value, str):  # MLflow decodes such a document once more
            json.loads(value, object_pairs_hook=seen)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the body is not JSON: {type(error).__name__}") from error
