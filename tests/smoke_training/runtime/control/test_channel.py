"""The line between launchers: who is let in, what gets through, what is put off."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoke_training.runtime.control import channel
from smoke_training.runtime.control.channel import ChannelCaller, ChannelEvent, ChannelListener, hello

ADDRESS = "127.77.1.9"


class Line:
    """A listener, and callers that reach it."""

    def __init__(self) -> None:
        self.sock = channel.listen(ADDRESS, 0)
        self.port = self.sock.getsockname()[1]
        self.listener = ChannelListener(self.sock, "word")
        self.callers: list[ChannelCaller] = []
        self.events: list[ChannelEvent] = []
        self.clock = time.monotonic()

    def caller(self, node: int = 1, word: str = "word", **facts: Any) -> ChannelCaller:
        found = ChannelCaller(ADDRESS, self.port)
        found.greet(hello(word, node, facts))
        self.callers.append(found)
        return found

    def stranger(self, content: bytes) -> socket.socket:
        sock = socket.create_connection((ADDRESS, self.port))
        sock.sendall(content)
        return sock

    def run(self, rounds: int = 30, passed: float = 0.0) -> list[tuple[ChannelCaller, ChannelEvent]]:
        """Let all ends poll; return the events of the callers."""
        result = []
        self.clock += passed
        for _ in range(rounds):
            now = max(self.clock, time.monotonic() + passed)
            self.events += self.listener.poll(now)
            for caller in self.callers:
                result += [(caller, event) for event in caller.poll(now)]
            time.sleep(0.002)
        return result

    def of(self, kind: str) -> list[ChannelEvent]:
        return [event for event in self.events if event.kind == kind]


@pytest.fixture
def line() -> Iterator[Line]:
    found = Line()
    yield found
    found.listener.close()
    for caller in found.callers:
        caller.close()


def test_a_hello_opens_the_line_both_ways(line: Line) -> None:
    caller = line.caller(node=3, gpus=8)
    line.run()
    (met,) = line.of("hello")
    assert (met.node, met.message["facts"], met.message["same_plan"]) == (3, {"gpus": 8}, True)
    caller.send({"type": "beat", "n": 1})
    line.listener.send({"type": "go"})
    result = line.run()
    assert [event.message for event in line.of("said")] == [{"type": "beat", "n": 1}]
    assert [event.message for _, event in result] == [{"type": "go"}]
    assert line.listener.connected() == {3}


def test_a_node_of_another_plan_is_reported_and_refused(line: Line) -> None:
    caller = line.caller(word="another")
    result = line.run()
    (met,) = line.of("hello")
    assert met.message["same_plan"] is False
    assert [event.message["type"] for _, event in result] == ["refused"]
    caller.send({"type": "beat"})
    line.listener.send({"type": "over"})
    result = line.run()
    assert line.of("said") == []
    assert line.listener.connected() == frozenset()
    assert [event.message["type"] for _, event in result] == ["over"]  # it learns how the run ended


def test_a_second_node_of_the_same_number_is_kept_out(line: Line) -> None:
    first = line.caller(node=1)
    line.run()
    second = line.caller(node=1)
    result = line.run()
    assert [(caller is second, event.message["reason"]) for caller, event in result] == [
        (True, "a second node")
    ]
    first.send({"type": "beat"})
    line.run()
    assert len(line.of("said")) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x80\x04\x95\x1f\n",  # the start of a pickle
        b"[1, 2]\n",
        b"{}\n",
        b"[" * 200_000 + b"\n",
        json.dumps(hello("word", 0, {})).encode() + b"\n",  # node 0 is the one that listens
        json.dumps({**hello("word", 1, {}), "node": True}).encode() + b"\n",
        json.dumps({**hello("word", 1, {}), "node": 1 << 40}).encode() + b"\n",
        json.dumps({**hello("word", 1, {}), "facts": []}).encode() + b"\n",
        json.dumps({**hello("word", 1, {}), "protocol": "trainstack.smoke-control/0"}).encode() + b"\n",
    ],
)
def test_a_stranger_is_put_off(line: Line, garbage: bytes) -> None:
    caller = line.caller()
    sock = line.stranger(garbage)
    line.run()
    assert len(line.of("stranger")) == 1
    sock.settimeout(2)
    assert sock.recv(100) == b""
    sock.close()
    caller.send({"type": "beat"})
    line.run()
    assert len(line.of("said")) == 1  # members are not disturbed


def test_a_line_without_end_is_cut_off(line: Line) -> None:
    sock = line.stranger(b"")
    sock.setblocking(False)
    sent = 0
    for _ in range(400):
        try:
            sent += sock.send(b"x" * 65536)
        except BlockingIOError:
            pass
        except OSError:
            break
        line.run(1)
    assert line.of("stranger")
    assert sent < 8 * channel.LINE_LIMIT
    sock.close()


def test_silent_connections_are_closed_in_time_and_limited(line: Line) -> None:
    silent = [line.stranger(b"") for _ in range(channel.UNKNOWN_AT_MOST)]
    line.run(3)
    line.caller()
    line.run(10)
    assert line.of("hello") == []  # the room is full
    line.run(30, passed=channel.HELLO_TIMEOUT_S + 1)
    assert len(line.of("stranger")) == len(silent)
    assert len(line.of("hello")) == 1
    for sock in silent:
        sock.close()


def test_a_lost_connection_is_reported_once_on_both_sides(line: Line) -> None:
    caller = line.caller()
    line.run()
    caller.close()
    line.run()
    assert [event.node for event in line.of("gone")] == [1]
    other = line.caller(node=2)
    line.run()
    line.listener.close()
    result = [(c, e) for c, e in ((other, e) for _ in range(20) for e in other.poll(time.monotonic()))]
    assert [event.kind for _, event in result] == ["gone"]


def test_a_caller_retries_until_node_0_listens() -> None:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port = probe.getsockname()[1]
    caller = ChannelCaller(ADDRESS, port)
    caller.greet(hello("word", 1, {}))
    for _ in range(5):
        assert caller.poll(time.monotonic()) == []
    listener = ChannelListener(channel.listen(ADDRESS, port), "word")
    found: list[ChannelEvent] = []
    deadline = time.monotonic() + 10
    while not found and time.monotonic() < deadline:
        caller.poll(time.monotonic())
        found += listener.poll(time.monotonic())
        time.sleep(0.01)
    assert [event.kind for event in found] == ["hello"]
    caller.close()
    listener.close()


def test_a_peer_that_reads_nothing_is_given_up(line: Line) -> None:
    sock = line.stranger(json.dumps(hello("word", 1, {})).encode() + b"\n")
    line.run()
    for _ in range(200):
        line.listener.send({"type": "beat", "padding": "x" * 100_000})
    line.run()
    assert [event.node for event in line.of("gone")] == [1]
    sock.close()


def test_a_taken_port_is_named(line: Line) -> None:
    with pytest.raises(OSError, match=f"{ADDRESS}:{line.port}"):
        channel.listen(ADDRESS, line.port)


@settings(max_examples=25)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=50), max_size=4), max_size=8
    )
)
def test_messages_arrive_whole_and_in_order(messages: list[dict[str, Any]]) -> None:
    line = Line()
    try:
        caller = line.caller()
        line.run(5)
        for message in messages:
            caller.send(message)
        line.run(10)
        assert [event.message for event in line.of("said")] == messages
    finally:
        line.listener.close()
        caller.close()
