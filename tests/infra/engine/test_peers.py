"""Servers on a loopback port answer processes of their own user only."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2_grpc

from infra.engine import peers
from infra.engine.language_host import LanguageHost

STRANGER = 65534


@pytest.fixture(params=[peers._by_netlink, peers._by_list])
def find(request: pytest.FixtureRequest) -> Callable[[peers.Address, peers.Address], int | None]:
    found: Callable[[peers.Address, peers.Address], int | None] = request.param
    return found


@pytest.mark.parametrize(
    ("listening", "family", "host"),
    [
        ("127.0.0.1", socket.AF_INET, "127.0.0.1"),
        ("127.64.7.9", socket.AF_INET, "127.64.7.9"),
        ("::1", socket.AF_INET6, "::1"),
        ("127.0.0.1", socket.AF_INET6, "::ffff:127.0.0.1"),
    ],
)
def test_the_owner_of_the_other_end_is_found(
    find: Callable[[peers.Address, peers.Address], int | None],
    listening: str,
    family: socket.AddressFamily,
    host: str,
) -> None:
    server_family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    try:
        server = socket.create_server((listening, 0), family=server_family)
    except OSError:
        pytest.skip(f"this machine has no {listening}")
    with server, socket.socket(family) as client:
        client.connect((host, server.getsockname()[1]))
        conversation, _ = server.accept()
        with conversation:
            local, peer = conversation.getsockname()[:2], conversation.getpeername()[:2]
            assert find(local, peer) == os.geteuid()
            assert find(local, (peer[0], 1)) is None
            client.close()
            assert find(local, peer) is None, "a socket that no process holds"


@pytest.fixture
def server() -> Iterator[int]:
    server, port = peers.loopback_server(2)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost("", Path("exec")), server)
    server.start()
    yield port
    server.stop(None)


CALL = """
import os, sys, grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2_grpc
os.setuid(int(sys.argv[2]))
stub = language_pb2_grpc.LanguageRuntimeStub(grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}"))
try:
    print(stub.GetPluginInfo(empty_pb2.Empty(), timeout=20).version)
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as a second user needs root")
def test_a_second_user_is_refused(server: int) -> None:
    def call(user: int) -> str:
        words = [sys.executable, "-c", CALL, str(server), str(user)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    assert call(os.geteuid()) == version("pulumi")
    assert call(STRANGER).startswith("PERMISSION_DENIED ")


def test_without_the_kernels_answer_nothing_is_served(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(local: peers.Address, peer: peers.Address) -> int | None:
        raise OSError("out of sockets")

    monkeypatch.setattr(peers, "_by_netlink", nothing)
    stub = language_pb2_grpc.LanguageRuntimeStub(grpc.insecure_channel(f"127.0.0.1:{server}"))
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        stub.GetPluginInfo(empty_pb2.Empty(), timeout=20)
