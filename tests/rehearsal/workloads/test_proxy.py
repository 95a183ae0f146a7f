"""Addresses of Services."""

import socket

from rehearsal.workloads.proxy import Proxy


def test_connections_end_with_the_addresses() -> None:
    proxy = Proxy()
    with socket.create_server(("127.64.3.6", 0)) as pod:
        proxy.open("127.64.3.7", {28080: pod.getsockname})
        with (
            socket.create_connection(("127.64.3.7", 28080), timeout=30) as asking,
            pod.accept()[0] as answering,
        ):
            answering.sendall(b"first")
            assert asking.recv(5) == b"first"
            proxy.stop()
            assert asking.recv(5) == b""
