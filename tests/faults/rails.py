"""A rail that carries nothing, or next to nothing."""

from dataclasses import dataclass

from tests.faults import network, probes
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run


@dataclass
class DeadRail(Injector):
    """One node's rail: its cable pulled at the switch (`unplugged`), a port that forwards nothing although
    the link is up (`isolated`), or a trickle of 1 Mb/s (`starved`).
    """

    node: int = 1
    rail: str = "eth1"
    how: str = "unplugged"

    def install(self, lab: Lab) -> None:
        peer = (self.node + 1) % lab.size
        if not probes.answers(lab, peer, self.node, self.rail):
            raise InjectorError(f"{self.rail} of node {self.node} was dead before the fault")
        place, end = lab.nodes[self.node].place, network.port(self.rail, self.node)
        if self.how != "starved":
            words = ["down"] if self.how == "unplugged" else ["nomaster"]
            lab.switch.command("ip", "link", "set", end, *words)
            if probes.answers(lab, peer, self.node, self.rail):
                raise InjectorError(f"{self.rail} of node {self.node} still answers")
            self.evidence = "it answers no more"
        else:
            network.shape(place, self.rail, 0.001, "change")
            network.shape(lab.switch, end, 0.001, "change")
            rate = probes.transfer_gbit_s(lab, self.node, peer, self.rail, 0.3)
            if rate > 0.01:
                raise InjectorError(f"{self.rail} of node {self.node} still carries {rate:.3f} Gb/s")
            self.evidence = f"it carries {rate * 1000:.2f} Mb/s"
        self._before = network.counters(place, self.rail)

    def prove(self, run: Run) -> str:
        now = network.counters(run.lab.nodes[self.node].place, self.rail)
        moved = {key: now[key] - self._before[key] for key in ("rx_bytes", "tx_bytes")}
        allowed = run.elapsed() * 1e6 / 8 * 1.2 + 100_000 if self.how == "starved" else 10_000
        if moved["rx_bytes"] > allowed:
            raise InjectorError(f"{self.rail} of node {self.node} received {moved['rx_bytes']} bytes")
        return f"{self.rail} of node {self.node}: {self.evidence}; bytes during the run {moved}"

    def remove(self, lab: Lab) -> None:
        end, full = network.port(self.rail, self.node), lab.wires.rate(self.rail)
        lab.switch.command("ip", "link", "set", end, "up", "master", f"br-{self.rail}")
        network.shape(lab.nodes[self.node].place, self.rail, full)
        network.shape(lab.switch, end, full)
