"""Lines of JSON between the launchers of a run: node 0 listens, the others call.

Everything is non-blocking and driven by `poll`, so that a launcher needs no threads and a peer that is
slow, silent or hostile cannot block it. The first line of a connection is a hello in our protocol;
any other connection is a stranger and is closed. Nothing is ever executed or unpickled, lines and
connections are bounded.
"""

import contextlib
import errno
import hmac
import json
import os
import select
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

PROTOCOL = "trainstack.smoke-control/1"
LINE_LIMIT = 256 * 1024  # bytes; a hello with every variable and interface of a big node has about 20 KiB
OUTGOING_LIMIT = 1024 * 1024  # bytes a peer may leave unread before it counts as lost
UNKNOWN_AT_MOST = 64  # connections without a hello yet
HELLO_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 3.0
RETRY_S = 0.25
CHUNK = 64 * 1024

Message = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class ChannelEvent:
    """Event of `poll`: kind is hello | said | gone | stranger, `node` its source (None for a stranger)."""

    kind: str
    node: int | None
    message: Message = field(default_factory=dict)


class LineTooLongError(ValueError):
    """A peer sent more than LINE_LIMIT bytes without a line's end."""


class ChannelConnection:
    """One socket with its two buffers."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.closed = self.end_reported = False
        self._incoming, self._outgoing = b"", b""
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: Mapping[str, object]) -> None:
        """Queue one message and try to send it; a peer that reads nothing is disconnected."""
        self._outgoing += json.dumps(message, allow_nan=False).encode() + b"\n"
        if len(self._outgoing) > OUTGOING_LIMIT:
            self.close()
        self.flush()

    def flush(self) -> None:
        """Send what can be sent without waiting."""
        while self._outgoing and not self.closed:
            try:
                sent = self.sock.send(self._outgoing)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            self._outgoing = self._outgoing[sent:]

    def lines(self) -> list[bytes]:
        """Complete lines that have arrived; LineTooLongError for one that exceeds the limit."""
        while not self.closed:
            try:
                chunk = self.sock.recv(CHUNK)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
            self._incoming += chunk
            if len(self._incoming) > LINE_LIMIT + CHUNK:
                break
        *complete, self._incoming = self._incoming.split(b"\n")
        if len(self._incoming) > LINE_LIMIT or any(len(line) > LINE_LIMIT for line in complete):
            raise LineTooLongError
        return complete

    def events(self, node: int) -> list[ChannelEvent]:
        """Return the messages of `node`, at the other end; `gone`, once, for the end of the connection."""
        try:
            lines = [] if self.end_reported else self.lines()
        except LineTooLongError:
            self.close()
            lines = []
        found = [
            ChannelEvent(kind="said", node=node, message=m) for m in map(_decoded, lines) if m is not None
        ]
        if self.closed and not self.end_reported:
            self.end_reported = True
            found.append(ChannelEvent(kind="gone", node=node))
        return found

    def close(self) -> None:
        """Close at once; what was not sent is lost."""
        self.closed = True
        self.sock.close()


def hello(word: str, node: int, facts: Mapping[str, object]) -> Message:
    """The first line of a connection; `word` is the digest of the plan, known to the run's nodes only."""
    return {"type": "hello", "protocol": PROTOCOL, "word": word, "node": node, "facts": dict(facts)}


def family(address: str) -> socket.AddressFamily:
    """Return the family of an address in text form."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(address: str, port: int) -> socket.socket:
    """A listening socket on one address of this node; an OSError names address and port."""
    try:
        sock = socket.create_server((address, port), family=family(address), backlog=256)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise OSError(error.errno, f"control channel on {address}:{port}: {reason}") from error
    sock.setblocking(False)
    return sock


class ChannelListener:
    """Node 0's side: accepts, sorts callers by their hello, reads and sends."""

    def __init__(self, sock: socket.socket | None, word: str) -> None:
        self._sock, self._word = sock, word
        self._unknown: dict[ChannelConnection, float] = {}
        self._nodes: dict[int, ChannelConnection] = {}
        self._guests: list[ChannelConnection] = []  # of another plan, or a second node of the same number

    def poll(self, now: float) -> list[ChannelEvent]:
        """Return all events since the last call; `now` is a monotonic time in seconds."""
        events = list(self._greet(now)) if self._sock is not None else []
        for node, connection in list(self._nodes.items()):
            connection.flush()
            events += connection.events(node)
        for guest in self._guests:
            guest.flush()
        return events

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message to every connected node, and to refused ones."""
        for connection in (*self._nodes.values(), *self._guests):
            connection.send(message)

    def connected(self) -> frozenset[int]:
        """The nodes that are connected now."""
        return frozenset(node for node, connection in self._nodes.items() if not connection.closed)

    def close(self) -> None:
        """Close everything; the queue is flushed once."""
        for connection in (*self._nodes.values(), *self._guests, *self._unknown):
            connection.flush()
            connection.close()
        if self._sock is not None:
            self._sock.close()

    def _greet(self, now: float) -> Iterable[ChannelEvent]:
        assert self._sock is not None
        while len(self._unknown) < UNKNOWN_AT_MOST:
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED):
                    break
                raise
            self._unknown[ChannelConnection(sock)] = now
        for connection, since in list(self._unknown.items()):
            yield from self._introduced(connection, now - since)

    def _introduced(self, connection: ChannelConnection, waited: float) -> Iterable[ChannelEvent]:
        try:
            lines = connection.lines()
        except LineTooLongError:
            lines = [b""]
        greeting = _decoded(lines[0]) if lines else None
        if not lines and waited <= HELLO_TIMEOUT_S and not connection.closed:
            return
        del self._unknown[connection]
        if greeting is None or not _is_hello(greeting):
            connection.close()
            yield ChannelEvent(kind="stranger", node=None)
            return
        node = int(str(greeting["node"]))
        same = hmac.compare_digest(str(greeting["word"]), self._word)
        yield ChannelEvent(kind="hello", node=node, message={**greeting, "same_plan": same})
        if not same or (node in self._nodes and not self._nodes[node].closed):
            connection.send({"type": "refused", "reason": "another plan" if not same else "a second node"})
            self._guests.append(connection)
            if len(self._guests) > UNKNOWN_AT_MOST:
                self._guests.pop(0).close()
            return
        self._nodes[node] = connection
        yield from (ChannelEvent(kind="said", node=node, message=m) for m in map(_decoded, lines[1:]) if m)


class ChannelCaller:
    """Any other node's side: connects with retries, sends the hello, reads and sends."""

    def __init__(self, address: str, port: int) -> None:
        self._target = (address, port)
        self._greeting: Message = {}
        self._connection: ChannelConnection | None = None
        self._calling: tuple[socket.socket, float] | None = None
        self._next_call = 0.0

    def greet(self, greeting: Message) -> None:
        """Set the first message of every connection; a change is sent at once as `again`."""
        if self._connection is not None and greeting != self._greeting:
            self._connection.send({**greeting, "type": "again"})
        self._greeting = greeting

    @property
    def connected(self) -> bool:
        """True if connected to node 0."""
        return self._connection is not None and not self._connection.closed

    def poll(self, now: float) -> list[ChannelEvent]:
        """Return node 0's messages since the last call; reconnects if disconnected."""
        if self._connection is None:
            self._call(now)
            return []
        self._connection.flush()
        return self._connection.events(0)

    def redial(self) -> None:
        """Drop a lost or refused connection, so that `poll` reconnects."""
        self.close()
        self._connection = None

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message to node 0; lost without a connection."""
        if self._connection is not None and not self._connection.closed:
            self._connection.send(message)

    def close(self) -> None:
        """Close; the queue is flushed once."""
        if self._calling is not None:
            self._calling[0].close()
            self._calling = None
        if self._connection is not None and not self._connection.closed:
            self._connection.flush()
            self._connection.close()

    def _call(self, now: float) -> None:
        if self._calling is None:
            if now < self._next_call:
                return
            self._next_call = now + RETRY_S
            sock = socket.socket(family(self._target[0]), socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.connect_ex(self._target)
            self._calling = (sock, now)
        sock, since = self._calling
        poller = select.poll()  # not select(), which supports no descriptor above 1023
        poller.register(sock, select.POLLOUT)
        writable = bool(poller.poll(0))
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if writable else 0
        if failed or (not writable and now - since > CONNECT_TIMEOUT_S):
            sock.close()
            self._calling = None
        elif writable:
            self._calling = None
            self._connection = ChannelConnection(sock)
            self._connection.send(self._greeting)


def _decoded(line: bytes) -> Message | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_hello(message: Message) -> bool:
    node = message.get("node")
    return (
        message.get("type") == "hello"
        and message.get("protocol") == PROTOCOL
        and isinstance(node, int)
        and not isinstance(node, bool)
        and 0 < node < 1 << 20
        and isinstance(message.get("word"), str)
        and isinstance(message.get("facts"), dict)
    )
