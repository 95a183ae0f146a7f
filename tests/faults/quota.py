"""A node whose processes get less CPU time than they need."""

from dataclasses import dataclass

from tests.faults import probes
from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Node, Run

PERIOD_US = 10_000  # the default of 100 ms makes steps in time, not slowness
CORRECTION_S = 0.5
GAIN = 0.4


@dataclass
class Quota(Injector):
    """A CPU limit on one node, below its need: more than a fifth of the time its processes are throttled.

    Work that comes in bursts, as training steps do, saves up quota while it rests, and a process that others
    keep off the CPU never gets as far as its quota. So the limit starts at `share` of what one busy process
    can use and then follows the need: every half second it is corrected towards `throttled`, the share of the
    time that the kernel holds the node back. Steps then compute about 1.25 times as long.
    """

    node: int = 1
    share: float = 0.7
    throttled: float = 0.22
    least_slowdown: float = 1.12
    _since: tuple[float, float] | None = None  # when ranks first ran, and seconds throttled by then
    _last: tuple[float, float] = (0.0, 0.0)

    def install(self, lab: Lab) -> None:
        node = lab.nodes[self.node]
        # The best of several: what others on this machine take away is not the node's need.
        self._need = max(probes.cpu_share(node, 0.1) for _ in range(5))
        self._share, self._since = self.share, None
        node.group.write("cpu", "cpu.cfs_period_us", str(PERIOD_US))
        self._limit(node)
        before = self._count(node)
        had = probes.cpu_share(node, 0.5)
        bites = self._count(node) - before
        # The kernel lends a slice or two beyond the quota.
        if had > self.share * self._need * 1.05 or bites < 5:
            text = f"a busy process had {had:.3f} of {self._need:.3f} CPUs, {self.share} allowed"
            raise InjectorError(f"{text}; {bites} throttlings")
        slower = probes.slowdown(node)
        if slower < self.least_slowdown:
            raise InjectorError(f"work in bursts takes only {slower:.2f} times its CPU time")
        self.measured = (had, slower)

    def _limit(self, node: Node) -> None:
        node.group.write("cpu", "cpu.cfs_quota_us", str(round(self._share * self._need * PERIOD_US)))

    def _count(self, node: Node) -> int:
        return node.group.counter("cpu", "cpu.stat", "nr_throttled")

    def _now(self, run: Run) -> tuple[float, float]:
        """Seconds of the run, and those in which the node was throttled."""
        node = run.lab.nodes[self.node]
        return run.elapsed(), node.group.counter("cpu", "cpu.stat", "throttled_time") / 1e9

    def watch(self, run: Run) -> None:
        if self._since is None:
            if any(event.get("what") == "world" for event in run.events()):
                self._since = self._last = self._now(run)
            return
        if run.elapsed() - self._last[0] < CORRECTION_S:
            return
        now = self._now(run)
        found = (now[1] - self._last[1]) / (now[0] - self._last[0])
        self._last = now
        self._share = min(0.95, max(0.3, self._share * (1 + GAIN * (found - self.throttled))))
        self._limit(run.lab.nodes[self.node])

    def prove(self, run: Run) -> str:
        if self._since is None:
            raise InjectorError("the ranks never came together, so they were not slowed")
        now = self._now(run)
        seconds = now[0] - self._since[0]
        share = (now[1] - self._since[1]) / seconds
        text = f"node {self.node} was throttled for {share:.1%} of {seconds:.1f} s"
        if share < self.throttled * 0.7:
            raise InjectorError(f"{text}, {self.throttled:.0%} wanted")
        had, slower = self.measured
        figures = (
            f"busy process: {had:.3f} CPUs; bursts: {slower:.2f} times as long; at last {self._share:.2f}"
        )
        return f"{text} ({figures} of a CPU)"

    def remove(self, lab: Lab) -> None:
        lab.nodes[self.node].group.write("cpu", "cpu.cfs_quota_us", "-1")
