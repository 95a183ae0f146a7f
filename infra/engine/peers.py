"""The user at the other end of a local TCP connection, and gRPC servers for the own user only.

The engine uses plain gRPC on a port of 127.0.0.1, which every user of the machine can reach. The kernel has
the owner of the socket at the other end.
"""

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc

Address = tuple[str, int]

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
# source: include/uapi/linux/{netlink,sock_diag,inet_diag}.h of Linux 6.12
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, _NLMSG_ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port id
_REQUEST = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_TUPLE = struct.Struct("!HH16s16sI8s")  # ports, addresses, interface, cookie; of the socket asked for
_FOUND = struct.Struct("=4B48x5I")  # family, state, timer, retransmits; expires, queues, uid, inode
_ANY_STATE, _ANY_COOKIE = 0xFFFFFFFF, b"\xff" * 8
# The engine's own limit; source: sdk/go/common/util/rpcutil/rpc.go of Pulumi 3.259
_LARGEST_MESSAGE = 400 * 1024 * 1024


def peer_uid(local: Address, peer: Address) -> int | None:
    """The user id that owns the socket `peer` of a connection whose end here is `local`.

    None when there is no such socket on this machine, or its process has ended.
    """
    try:
        return _by_netlink(local, peer)
    except OSError as error:
        # Some sandboxes do not support this netlink family; their lists of sockets are short.
        if error.errno not in (
            errno.EPROTONOSUPPORT,
            errno.EOPNOTSUPP,
            errno.EAFNOSUPPORT,
            errno.EPERM,
            errno.EACCES,
        ):
            return None
    return _by_list(local, peer)


def is_own(local: Address, peer: Address) -> bool:
    """Return whether a process of this user is at the other end; False if unknown."""
    return peer_uid(local, peer) == os.geteuid()


class OwnUserOnly(grpc.ServerInterceptor):
    """Refuses every request that does not come from a process of this user, before it is handled.

    Checked for every request: with a cache, the next user of a port could pass as the previous one.
    """

    def __init__(self) -> None:
        self.address: Address = ("127.0.0.1", 0)

    def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], "grpc.RpcMethodHandler[_Request, _Response] | None"
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[_Request, _Response] | None":
        """The method with the check before it; methods with a request stream are not served."""
        handler: Any = continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return None
        answer = handler.unary_stream if handler.response_streaming else handler.unary_unary

        def checked(request: Any, context: grpc.ServicerContext) -> Any:
            if not is_own(self.address, _address(context.peer())):
                context.abort(
                    grpc.StatusCode.PERMISSION_DENIED, "this server accepts requests of its own user only"
                )
            return answer(request, context)

        served = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return served(checked, handler.request_deserializer, handler.response_serializer)


def loopback_server(threads: int, name: str = "") -> tuple[grpc.Server, int]:
    """A gRPC server for processes of this user, and its port on 127.0.0.1; not started yet."""
    guard = OwnUserOnly()
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    options = [("grpc.max_receive_message_length", _LARGEST_MESSAGE)]
    server = grpc.server(pool, options=options, interceptors=[guard])
    port = server.add_insecure_port("127.0.0.1:0")
    guard.address = ("127.0.0.1", port)
    return server, port


def _address(peer: str) -> Address:
    """The address in `ipv4:127.0.0.1:50000` or `ipv6:%5B::1%5D:50000`; an unused address for others."""
    scheme, _, rest = peer.partition(":")
    host, _, port = rest.rpartition(":")
    host = host.removeprefix("%5B").removesuffix("%5D").strip("[]")
    return (host, int(port)) if scheme in ("ipv4", "ipv6") and port.isdigit() else ("0.0.0.0", 0)  # noqa: S104


def _by_netlink(local: Address, peer: Address) -> int | None:
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    ends = [socket.inet_pton(family, host).ljust(16, b"\0") for host in (peer[0], local[0])]
    wanted = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    wanted += _TUPLE.pack(peer[1], local[1], *ends, 0, _ANY_COOKIE)
    length = _HEADER.size + len(wanted)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + wanted)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] == _NLMSG_ERROR:
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if code == errno.ENOENT:  # no such socket, or no such module
            return _by_list(local, peer)
        raise OSError(code, os.strerror(code))
    *_, uid, inode = _FOUND.unpack_from(answer, _HEADER.size)
    return uid if inode else None


def _by_list(local: Address, peer: Address) -> int | None:
    """The same from /proc/net: source: Documentation/networking/proc_net_tcp.rst."""
    wanted = (_parsed(peer), _parsed(local))
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if (_listed(fields[1]), _listed(fields[2])) == wanted and fields[9] != "0":
                return int(fields[7])
    return None


def _parsed(address: Address) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    return _unmapped(ipaddress.ip_address(address[0])), address[1]


def _listed(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """An address such as `0100007F:1F90`: 32-bit words in the byte order of the machine."""
    host, _, port = text.partition(":")
    words = [int(host[index : index + 8], 16).to_bytes(4, "little") for index in range(0, len(host), 8)]
    return _unmapped(ipaddress.ip_address(b"".join(words))), int(port, 16)


def _unmapped(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
