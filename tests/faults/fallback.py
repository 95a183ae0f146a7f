"""Training traffic that silently takes the management network."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults import network
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run
from tests.faults.network import MANAGEMENT


@dataclass
class Fallback(Injector):
    """Every node's gloo bound to the wrong interface; or to none, when it takes the one of its host name."""

    interface: str | None = MANAGEMENT
    _before: dict[tuple[int, str], int] = field(default_factory=dict)

    def install(self, lab: Lab) -> None:
        self._before = self._sent(lab)

    def environment(self, lab: Lab, node: int) -> Mapping[str, str | None]:
        return {"GLOO_SOCKET_IFNAME": self.interface}

    def _sent(self, lab: Lab) -> dict[tuple[int, str], int]:
        return {
            (node.index, name): network.counters(node.place, name)["tx_bytes"]
            for node in lab.nodes
            for name in lab.wires.all
        }

    def prove(self, run: Run) -> str:
        now = self._sent(run.lab)
        moved = {key: now[key] - self._before[key] for key in now}
        by_management = sum(count for (_, name), count in moved.items() if name == MANAGEMENT)
        by_rails = sum(moved.values()) - by_management
        if by_management < 1_000_000 or by_rails > by_management / 10:
            raise InjectorError(f"{by_management} bytes went by {MANAGEMENT}, {by_rails} by the rails")
        return f"{by_management} bytes went by {MANAGEMENT}, {by_rails} by the rails"
