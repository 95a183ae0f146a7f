"""HTTP requests, methods and errors of Google's REST APIs."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rehearsal.dataplane.gcp.identity import Caller

Answer = Mapping[str, Any]
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class ServiceError(Exception):
    """An error of a service (google.rpc.Status)."""

    def __init__(
        self, status: int, message: str, code: str = "", *, more: Mapping[str, Any] | None = None
    ) -> None:
        """`more`: further fields of the error, in services with their own format."""
        self.status, self.message, self.code = status, message, code or _CODES[status]
        self.more = dict(more or {})
        super().__init__(f"{self.code}: {message}")

    @property
    def body(self) -> Answer:
        """The body of the response."""
        return {"error": {"code": self.status, "message": self.message, "status": self.code, **self.more}}


@dataclass(frozen=True)
class ApiCall:
    """One request; `parts` are the named parts of its path, unquoted."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes
    caller: Caller
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""

    @property
    def body(self) -> Answer:
        """The JSON object of the request, `{}` where there is none. Raises ServiceError."""
        try:
            found = json.loads(self.content or b"{}")
        except ValueError:
            found = None
        if not isinstance(found, Mapping):
            raise ServiceError(400, "Invalid JSON payload received.")
        return found


@dataclass(frozen=True)
class Content:
    """A response that is not JSON."""

    data: bytes
    kind: str = "application/octet-stream"
    status: int = 200


@dataclass(frozen=True)
class Method:
    """HTTP verb and path of a method; `path` is an expression with named parts, without the first slash."""

    verb: str
    path: str
    function: Callable[[ApiCall], Answer | Content]


class Api(Protocol):
    """Methods of one service."""

    def methods(self) -> Sequence[Method]:
        """The emulated methods."""


def find(apis: Sequence[Api], verb: str, path: str) -> tuple[Method, Mapping[str, str]] | None:
    """The method of a request and the named parts of its path."""
    for api in apis:
        for method in api.methods():
            found = re.fullmatch(method.path, path) if method.verb == verb else None
            if found:
                return method, found.groupdict()
    return None
