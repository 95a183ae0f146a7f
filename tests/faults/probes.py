"""Neutral probes: what a node can really do now, measured without any of the product's code.

Run as a script on a node (`python probes.py NAME ARGUMENTS`), where it needs nothing but Python; the
functions at the end run it from outside.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.lab import Lab, Node

PORT = 47001
CHUNK = bytes(1 << 16)
PATIENCE_S = 20.0


def serve() -> None:
    """Accept one connection on all addresses and answer with bytes and seconds of what came in."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        server.settimeout(PATIENCE_S)
        print("listening", flush=True)  # noqa: T201 - the prober waits for this line
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            buffer, total, began = bytearray(1 << 18), 0, None
            while count := connection.recv_into(buffer):
                began = time.perf_counter() if began is None else began
                total += count
            seconds = time.perf_counter() - (began or time.perf_counter())
        print(json.dumps({"bytes": total, "seconds": seconds}))  # noqa: T201


def send(address: str, source: str, size: int) -> None:
    """Send `size` bytes from a source address."""
    with socket.create_connection((address, PORT), PATIENCE_S, source_address=(source, 0)) as connection:
        for _ in range(size // len(CHUNK)):
            connection.sendall(CHUNK)


def reach(address: str, source: str, patience_s: float) -> None:
    """Whether a TCP packet comes back from an address: a refusal is an answer, too."""
    try:
        with socket.create_connection((address, 9), patience_s, source_address=(source, 0)):
            answered = True
    except ConnectionRefusedError:
        answered = True
    except OSError:
        answered = False
    print(json.dumps({"answered": answered}))  # noqa: T201


def datagrams(address: str, source: str, count: int, size: int) -> None:
    """Send UDP datagrams to a port where no process listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((source, 0))
        for number in range(count):
            sender.sendto(b"x" * size, (address, 9 + number % 2))


def spin(seconds: float) -> None:
    """Busy-loop for a wall time and report the CPU time had, in seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        pass
    wall = time.perf_counter() - began
    print(json.dumps({"wall_s": wall, "cpu_s": time.process_time() - cpu}))  # noqa: T201


def bursts(work: float, rest: float, count: int) -> None:
    """Do a piece of work again and again with rests in between; report each one's wall over CPU time."""
    ratios = []
    for _ in range(count):
        time.sleep(rest)
        began, cpu = time.perf_counter(), time.thread_time()
        while time.thread_time() - cpu < work:
            pass
        ratios.append((time.perf_counter() - began) / (time.thread_time() - cpu))
    print(json.dumps({"slowdown": sorted(ratios)[count // 2]}))  # noqa: T201


def write(folder: str, megabytes: int) -> None:
    """Write a file durably and report 10^6 bytes per second, fsync included."""
    path = Path(folder) / f"probe-{os.getpid()}"
    block = os.urandom(1_000_000)
    began = time.perf_counter()
    with path.open("wb") as stream:
        for _ in range(megabytes):
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    seconds = time.perf_counter() - began
    path.unlink()
    print(json.dumps({"mb_s": megabytes / seconds}))  # noqa: T201


def _run(node: "Node", *argv: str) -> dict[str, float]:
    words = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), *argv]
    found: dict[str, float] = json.loads(node.command(*words) or "{}")
    return found


def transfer_gbit_s(lab: "Lab", source: int, target: int, interface: str, megabytes: float) -> float:
    """Rate of one TCP stream over an interface, in 10^9 bits per second."""
    from tests.faults.network import address

    here, there = lab.nodes[source], lab.nodes[target]
    words = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    server = subprocess.Popen(there.argv(*words, "serve"), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        ends = address(lab.wires, interface, target), address(lab.wires, interface, source)
        here.command(*words, "send", *ends, str(int(megabytes * 1e6)))
        found = json.loads(server.communicate(timeout=PATIENCE_S)[0])
    finally:
        server.kill()
        server.wait()
    return float(found["bytes"] * 8 / found["seconds"] / 1e9)


def fastest_gbit_s(
    lab: "Lab", source: int, target: int, interface: str, megabytes: float, *, wanted: float = 0.0
) -> float:
    """The best of three transfers, or of up to ten until one has the wanted rate.

    A busy machine pauses them and wakes late, for seconds at times; nothing makes one faster than its wire.
    """
    best, done = 0.0, 0
    while done < 3 or (best <= wanted and done < 10):
        best, done = max(best, transfer_gbit_s(lab, source, target, interface, megabytes)), done + 1
    return best


def answers(lab: "Lab", source: int, target: int, interface: str, patience_s: float = 0.5) -> bool:
    """Whether a node answers another one over an interface."""
    from tests.faults.network import address

    ends = address(lab.wires, interface, target), address(lab.wires, interface, source)
    return bool(_run(lab.nodes[source], "reach", *ends, str(patience_s))["answered"])


def send_datagrams(
    lab: "Lab", source: int, target: int, interface: str, count: int, *, size: int = 100
) -> None:
    """Send datagrams of `size` bytes over an interface."""
    from tests.faults.network import address

    ends = address(lab.wires, interface, target), address(lab.wires, interface, source)
    _run(lab.nodes[source], "datagrams", *ends, str(count), str(size))


def cpu_share(node: "Node", seconds: float) -> float:
    """CPU seconds per second that one busy process gets on a node."""
    found = _run(node, "spin", str(seconds))
    return found["cpu_s"] / found["wall_s"]


def slowdown(node: "Node", work_s: float = 0.025, rest_s: float = 0.015, count: int = 30) -> float:
    """How much longer work that comes in bursts takes than its CPU time, as training steps do: the median."""
    return _run(node, "bursts", str(work_s), str(rest_s), str(count))["slowdown"]


def write_mb_s(node: "Node", folder: Path, megabytes: int) -> float:
    """Durable write rate of a folder as the node sees it, 10^6 bytes per second."""
    return _run(node, "write", str(folder), str(megabytes))["mb_s"]


def main() -> None:
    """Run one probe on this node."""
    name, arguments = sys.argv[1], sys.argv[2:]
    if name == "serve":
        serve()
    elif name == "send":
        send(arguments[0], arguments[1], int(arguments[2]))
    elif name == "reach":
        reach(arguments[0], arguments[1], float(arguments[2]))
    elif name == "datagrams":
        datagrams(arguments[0], arguments[1], int(arguments[2]), int(arguments[3]))
    elif name == "spin":
        spin(float(arguments[0]))
    elif name == "bursts":
        bursts(float(arguments[0]), float(arguments[1]), int(arguments[2]))
    elif name == "write":
        write(arguments[0], int(arguments[1]))
    else:
        raise SystemExit(f"no probe {name}")


if __name__ == "__main__":
    main()
