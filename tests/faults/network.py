"""The laboratory's network: nodes on rails and a management network, every link shaped to a declared rate.

A shaped wire is the cure for noise: the kernel's timers, not the CPU's mood, set the rate (token buckets;
MAD/median 0.000 at 1 Gb/s against 0.061 of a free veth).
"""

import json
from dataclasses import dataclass

from tests.faults.system import LabError, command

MANAGEMENT = "mgmt0"
# Smaller than a 64 KiB super-packet, so that the bucket cuts those into packets before they reach a loss
# injector, as a network card would.
BURST = "32kb"
LATENCY = "400ms"


@dataclass(frozen=True, kw_only=True)
class Wires:
    """Interfaces that carry training traffic, and declared rates in Gb/s."""

    rails: tuple[str, ...] = ("eth0",)
    rail_gbit_s: float = 0.5
    management_gbit_s: float = 0.2

    def rate(self, interface: str) -> float:
        """Declared rate of one interface in Gb/s."""
        return self.management_gbit_s if interface == MANAGEMENT else self.rail_gbit_s

    @property
    def all(self) -> tuple[str, ...]:
        """Every interface of a node."""
        return (*self.rails, MANAGEMENT)


@dataclass(frozen=True)
class Place:
    """A set of namespaces that a process keeps alive."""

    pid: int

    def inside(self, *argv: str) -> list[str]:
        """Command words that run in these namespaces."""
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", "--", *argv]

    def command(self, *argv: str, check: bool = True) -> str:
        """Run a command in these namespaces."""
        return command(*self.inside(*argv), check=check)


def address(wires: Wires, interface: str, node: int) -> str:
    """IPv4 address of a node's interface; every rail is a subnet of its own."""
    return f"10.77.{wires.all.index(interface)}.{node + 1}"


def port(interface: str, node: int) -> str:
    """Name of the switch's end of a node's link."""
    return f"{interface}-n{node}"


def shape(place: Place, interface: str, gbit_s: float, verb: str = "replace") -> None:
    """Let one end of a link send at most at this rate."""
    rate = f"{round(gbit_s * 1e6)}kbit"
    bucket = ["tbf", "rate", rate, "burst", BURST, "latency", LATENCY]
    place.command("tc", "qdisc", verb, "dev", interface, "root", *bucket)


def connect(switch: Place, nodes: list[Place], wires: Wires) -> None:
    """Build one bridge per network in the switch and plug every node into every one."""
    plumbing, setup = [], list[str]()
    for interface in wires.all:
        setup.append(f"ip link add br-{interface} type bridge && ip link set br-{interface} up")
        for index, node in enumerate(nodes):
            plumbing.append(
                f"link add name {interface} netns {node.pid} type veth "
                f"peer name {port(interface, index)} netns {switch.pid}"
            )
            end = port(interface, index)
            setup.append(f"ip link set {end} master br-{interface} && ip link set {end} up")
    command("ip", "-batch", "-", text="\n".join(plumbing) + "\n")
    switch.command("sh", "-e", "-c", "\n".join(setup))
    for index, node in enumerate(nodes):
        lines = [
            f"ip address add {address(wires, name, index)}/24 dev {name}; ip link set {name} up"
            for name in wires.all
        ]
        node.command("sh", "-e", "-c", "\n".join(lines))
        for interface in wires.all:
            shape(node, interface, wires.rate(interface))
            shape(switch, port(interface, index), wires.rate(interface))


def counters(place: Place, interface: str) -> dict[str, int]:
    """Bytes, packets and drops of an interface, `rx_` and `tx_`, as the kernel counts them."""
    found = json.loads(place.command("ip", "-json", "-statistics", "link", "show", "dev", interface))
    stats = found[0]["stats64"]
    return {
        f"{way}_{name}": int(stats[way][name])
        for way in ("rx", "tx")
        for name in ("bytes", "packets", "dropped")
    }


def qdisc_counter(place: Place, interface: str, kind: str, name: str) -> int:
    """A counter of `tc -statistics qdisc`, such as `bytes` or `drops`."""
    shown = json.loads(place.command("tc", "-json", "-statistics", "qdisc", "show", "dev", interface))
    for qdisc in shown:
        if qdisc["kind"] == kind:
            return int(qdisc[name])
    raise LabError(f"{interface} has no qdisc {kind}: {[q['kind'] for q in shown]}")


def tcp_segments(place: Place) -> tuple[int, int]:
    """(segments sent, segments retransmitted) of a network namespace, from `/proc/net/snmp`."""
    lines = [line.split() for line in place.command("cat", "/proc/self/net/snmp").splitlines()]
    names, values = [line for line in lines if line[0] == "Tcp:"]
    found = dict(zip(names[1:], values[1:], strict=True))
    return int(found["OutSegs"]), int(found["RetransSegs"])
