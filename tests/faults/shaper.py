"""A link at a part of its rate."""

from dataclasses import dataclass

from tests.faults import network, probes
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run


@dataclass
class SlowLink(Injector):
    """The cable of one node's interface at `share` of its declared rate: one direction, or both."""

    node: int = 1
    rail: str = "eth0"
    share: float = 0.5
    both: bool = False

    def install(self, lab: Lab) -> None:
        rate = lab.wires.rate(self.rail) * self.share
        network.shape(lab.nodes[self.node].place, self.rail, rate, "change")
        if self.both:
            network.shape(lab.switch, network.port(self.rail, self.node), rate, "change")
        self._measure(lab, rate)
        self._before = self._sent(lab)

    def _measure(self, lab: Lab, rate: float) -> None:
        peer = (self.node + 1) % lab.size
        ways = [(self.node, peer), (peer, self.node)] if self.both else [(self.node, peer)]
        self.measured = [probes.fastest_gbit_s(lab, a, b, self.rail, rate * 30) for a, b in ways]
        for found in self.measured:
            # TCP and Ethernet headers take 5 % of what the bucket lets through; its first fill adds some.
            if not 0.8 * rate < found < 1.1 * rate:
                raise InjectorError(
                    f"{self.rail} of node {self.node}: {found:.3f} Gb/s measured, {rate} wanted"
                )

    def _sent(self, lab: Lab) -> int:
        return network.qdisc_counter(lab.nodes[self.node].place, self.rail, "tbf", "bytes")

    def prove(self, run: Run) -> str:
        sent = self._sent(run.lab) - self._before
        if sent < 1_000_000:
            raise InjectorError(f"only {sent} bytes went over the slow link {self.rail} of node {self.node}")
        rates = " and ".join(f"{rate:.3f}" for rate in self.measured)
        return f"node {self.node} sent {sent} bytes over a link measured at {rates} Gb/s"

    def remove(self, lab: Lab) -> None:
        full = lab.wires.rate(self.rail)
        network.shape(lab.nodes[self.node].place, self.rail, full)
        network.shape(lab.switch, network.port(self.rail, self.node), full)
