"""Delivery of frames of full size, by the kernel's acknowledgements."""

import socket

import pytest

from smoke_training.probes.network import reach


def answer(listener: socket.socket) -> list[str]:
    address, port = listener.getsockname()
    return reach._reach("127.0.0.1", {1: (address, port)}, [1])


def test_a_peer_that_takes_everything_is_reached_without_anybody_reading() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert answer(listener) == ["reached"]


def test_unacknowledged_data_is_distinguished_from_a_silent_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that has no room acknowledges as little as one whose frames are dropped."""
    monkeypatch.setattr(reach, "REACH_S", 0.2)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        assert answer(listener) == ["short"]
        closed = listener.getsockname()
    assert reach._reach("127.0.0.1", {1: closed}, [1]) == ["silent"]
    assert reach._reach(None, {1: closed}, [1]) == ["silent"]
