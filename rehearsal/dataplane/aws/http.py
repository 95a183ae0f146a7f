"""HTTP requests, responses and errors of the emulated AWS services."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from xml.sax.saxutils import escape

from rehearsal.dataplane.aws.identity import Caller

JSON = "application/x-amz-json-1.1"
XML = {"Content-Type": "text/xml"}


class ServiceError(Exception):
    """An error of a service."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        self.code, self.message, self.status = code, message, status
        super().__init__(f"{code}: {message}")


class Readable(Protocol):
    """The body of a request, without transfer encoding."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes, all of them for -1; empty at the end."""


@dataclass(frozen=True)
class Request:
    """One call; header names are in lower case, `path` is as it was sent (percent-encoded)."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Readable
    caller: Caller
    region: str
    query_text: str = ""
    """The query as it was sent."""

    @property
    def action(self) -> str:
        """The operation of a JSON service."""
        return self.headers.get("x-amz-target", "").rpartition(".")[2]

    def content(self) -> dict[str, Any]:
        """The body of a JSON service. Raises ServiceError for other content."""
        try:
            found = json.loads(self.body.read() or b"{}")
        except ValueError:
            raise ServiceError("SerializationException", "the body is not JSON") from None
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class FilePart:
    """`length` bytes of a file from `start`."""

    path: Path
    start: int
    length: int

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in chunks that fit into memory."""
        left = self.length
        with self.path.open("rb") as file:
            file.seek(self.start)
            while left > 0 and (piece := file.read(min(left, 1 << 20))):
                left -= len(piece)
                yield piece


@dataclass(frozen=True)
class Response:
    """A response; the length of the body is added to the headers."""

    status: int = 200
    body: bytes | FilePart = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Service(Protocol):
    """One service behind the port, identified by its name in signatures."""

    def answer(self, request: Request) -> Response:
        """The response to one request. Raises ServiceError."""

    def refusal(self, error: ServiceError) -> Response:
        """An error in the format of this service."""


Operation = Callable[[Request, dict[str, Any]], Mapping[str, Any]]


class JsonService:
    """A service with the JSON protocol: an operation by name, JSON in and out."""

    target: str
    """The prefix of `X-Amz-Target`."""

    def operations(self) -> Mapping[str, Operation]:
        """The emulated operations by name."""
        raise NotImplementedError

    def answer(self, request: Request) -> Response:
        """See `Service`."""
        wanted = request.headers.get("x-amz-target", "")
        operation = self.operations().get(request.action)
        if operation is None or not wanted.startswith(f"{self.target}."):
            raise ServiceError("UnknownOperationException", f"{wanted or 'this action'} is not emulated")
        return json_response(operation(request, request.content()))

    def refusal(self, error: ServiceError) -> Response:
        """See `Service`."""
        return json_response({"__type": error.code, "message": error.message}, error.status)


def query_refusal(error: ServiceError, namespace: str) -> Response:
    """An error in the query protocol: a form in, XML out."""
    text = (
        f'<ErrorResponse xmlns="{namespace}"><Error><Type>Sender</Type><Code>{error.code}</Code>'
        f"<Message>{escape(error.message)}</Message></Error></ErrorResponse>"
    )
    return Response(error.status, text.encode(), XML)


def json_response(content: Mapping[str, Any], status: int = 200) -> Response:
    """A response in the JSON protocol."""
    return Response(status, json.dumps(content).encode(), {"Content-Type": JSON})
