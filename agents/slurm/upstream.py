"""The tracking server behind the proxy of a node: what a service of a cloud offers to `mlflow_proxy`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Protocol


@dataclass(frozen=True)
class Reply:
    """The response of a server; `body` is read once."""

    status: int
    content_type: str
    body: Iterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


class Upstream(Protocol):
    """A tracking server that needs an identity of the machine."""

    def call(self, method: str, target: str, content: bytes, content_type: str) -> Reply:
        """Send a request of MLflow's API. Raises OSError, ValueError or KeyError."""
        ...

    def put(self, path: str, body: IO[bytes], length: int) -> Reply:
        """Store an artifact. Raises as `call`, and TooLargeError before it reads."""
        ...

    def get(self, path: str) -> Reply:
        """Read an artifact. Raises as `call`."""
        ...

    def listed(self, folder: str) -> Reply:
        """The artifacts of a folder, in the form of MLflow's own proxy. Raises as `call`."""
        ...
