"""Counters against files as the kernel writes them, and against this machine's own."""

import socket
from pathlib import Path

from smoke_training.runtime import counters

DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
  eth0: 3511588522 2000    1    2    0     0          0         0  3821860    1500    3    4    0     0       0          0
"""  # noqa: E501
SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin OutSegs RetransSegs InErrs
Tcp: 1 200 191284 150 0
"""
NETSTAT = "TcpExt: SyncookiesSent TCPDSACKRecv TCPDSACKRecvSegs\nTcpExt: 0 123 144\n"


def proc(home: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (home / name).write_text(text)
    return home


def test_interfaces_are_read_with_their_state(tmp_path: Path) -> None:
    sys = tmp_path / "sys"
    (sys / "eth0").mkdir(parents=True)
    for name, text in {"operstate": "up", "carrier": "1", "carrier_changes": "2", "speed": "25000"}.items():
        (sys / "eth0" / name).write_text(text + "\n")
    found = counters.interfaces(proc(tmp_path, dev=DEV), sys)["eth0"]
    assert (found.rx_bytes, found.tx_bytes) == (3511588522, 3821860)
    assert (found.operstate, found.carrier, found.speed_mbit_s, found.running) == ("up", 1, 25000, True)
    assert counters.bytes_of("eth0", tmp_path) == (3511588522, 3821860)
    assert counters.bytes_of("eth1", tmp_path) is None


def test_a_foreign_sysfs_is_not_believed(tmp_path: Path) -> None:
    for name in ("eth0", "eth7"):
        port(tmp_path / "sys", name, {"operstate": "down", "carrier": "0", "speed": "10"})
    found = counters.interfaces(proc(tmp_path, dev=DEV), tmp_path / "sys")["eth0"]
    assert (found.operstate, found.carrier, found.speed_mbit_s, found.running) == (None, None, None, None)


def test_needless_retransmissions_are_counted_separately(tmp_path: Path) -> None:
    found = counters.tcp(proc(tmp_path, snmp=SNMP, netstat=NETSTAT))
    assert found == counters.Tcp(sent=191284, retransmitted=150, spurious=144)


def test_an_old_kernel_counts_messages_and_no_kernel_counts_nothing(tmp_path: Path) -> None:
    old = proc(tmp_path, snmp=SNMP, netstat="TcpExt: TCPDSACKRecv\nTcpExt: 7\n")
    assert counters.tcp(old) == counters.Tcp(sent=191284, retransmitted=150, spurious=7)
    assert counters.tcp(tmp_path / "absent") is None
    assert counters.interfaces(tmp_path / "absent") == {}


def port(root: Path, name: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = root / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")


def test_rdma_ports_of_efa_and_infiniband(tmp_path: Path) -> None:
    hardware, plain = "ports/1/hw_counters", "ports/1/counters"
    efa_files = {"tx_bytes": "900", "rx_bytes": "800", "tx_pkts": "9", "retrans_pkts": "2"}
    port(tmp_path, "efa_0", {f"{hardware}/{name}": text for name, text in efa_files.items()})
    words = {"port_xmit_data": "100", "port_rcv_data": "50", "port_xmit_packets": "5"}
    port(tmp_path, "mlx5_0", {f"{plain}/{name}": text for name, text in words.items()})
    found = counters.ports(tmp_path)
    efa, infiniband = found["efa_0/1"], found["mlx5_0/1"]
    assert (efa.tx_bytes, efa.rx_bytes, efa.tx_packets, efa.retransmitted) == (900, 800, 9, 2)
    assert (infiniband.tx_bytes, infiniband.rx_bytes, infiniband.tx_packets) == (400, 200, 5)
    assert infiniband.retransmitted is None
    assert counters.ports(tmp_path / "absent") == {}


def test_this_machines_loopback_counts_what_goes_over_it() -> None:
    before = counters.interfaces()["lo"]
    assert (before.up, before.running, before.address) == (True, True, "127.0.0.1")
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as end, server.accept()[0] as other:
        end.sendall(b"x" * 10_000)
        assert len(other.recv(10_000, socket.MSG_WAITALL)) == 10_000
    after = counters.bytes_of("lo")
    assert after is not None
    assert after[1] - before.tx_bytes >= 10_000
    sent = counters.tcp()
    assert sent is not None
    assert sent.sent > 0
