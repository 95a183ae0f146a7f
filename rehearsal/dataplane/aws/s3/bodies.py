"""Request bodies of known length, in HTTP chunks, or in chunks of aws-chunked.

Source: RFC 9112 section 7.1; Amazon S3 API Reference, "Signature calculations for the Authorization header:
Transferring payload in multiple chunks" and "... including trailing headers".
"""

from collections.abc import Mapping

from rehearsal.dataplane.aws.http import Readable, ServiceError

_LINE = 8192


class Body:
    """Reads one body from a connection and never beyond it; `trailers` are set at its end."""

    def __init__(self, inside: "Readable", chunked: bool = False, length: int | None = None) -> None:
        self._inside, self._chunked = inside, chunked
        self._left = 0 if chunked else length or 0
        self._over = not chunked and not length
        self.trailers: dict[str, str] = {}

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes, all that are left for -1; empty at the end."""
        found = bytearray()
        while not self._over and (size < 0 or len(found) < size):
            if self._left == 0 and not self._next_chunk():
                break
            wanted = self._left if size < 0 else min(self._left, size - len(found))
            piece = self._inside.read(min(wanted, 1 << 20))
            if not piece:
                self._over = True
                break
            found += piece
            self._left -= len(piece)
            if self._left == 0:
                self._over = not self._chunked
                if self._chunked:
                    self._line()  # each chunk ends with an empty line
        return bytes(found)

    def drain(self) -> None:
        """Read and discard the rest."""
        while self.read(1 << 20):
            pass

    def _next_chunk(self) -> bool:
        """Begin the next chunk; at the end read the trailers."""
        if not self._chunked:
            self._over = True
            return False
        size = self._line().partition(b";")[0].strip()
        try:
            self._left = int(size or b"0", 16)
        except ValueError:
            self._over = True
            raise ServiceError("IncompleteBody", f"{size[:20]!r} is not the length of a chunk") from None
        if self._left:
            return True
        while (line := self._line().strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            self.trailers[name.strip().lower()] = value.strip()
        self._over = True
        return False

    def _line(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n") and len(line) < _LINE:
            byte = self._inside.read(1)
            if not byte:
                break
            line += byte
        return bytes(line)


class Nested(Body):
    """The content of aws-chunked within a body; draining reads the outer body, too."""

    def __init__(self, outer: Body) -> None:
        super().__init__(outer, chunked=True)
        self._outer = outer

    def drain(self) -> None:
        """See `Body`."""
        super().drain()
        self._outer.drain()


def body_of(headers: Mapping[str, str], connection: Readable) -> Body:
    """The body of the request with these headers (names in lower case), decoded."""
    chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    length = None if chunked else int(headers.get("content-length") or 0)
    body = Body(connection, chunked, length)
    signed_in_chunks = headers.get("x-amz-content-sha256", "").startswith("STREAMING-")
    if signed_in_chunks or "aws-chunked" in headers.get("content-encoding", ""):
        return Nested(body)
    return body
