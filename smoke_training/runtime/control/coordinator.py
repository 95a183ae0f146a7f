"""The launcher of node 0: start matching nodes, watch all ranks, end the run everywhere.

A run of one node uses the same code without a socket.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from smoke_training.evidence import Evidence, document_of
from smoke_training.evidence.liveness import Liveness, RankLife
from smoke_training.evidence.world import JoinedNodes, NodeFacts, StoppedEarly
from smoke_training.judges.run import liveness, world
from smoke_training.model import Verdict
from smoke_training.plan import Plan
from smoke_training.reader import decode
from smoke_training.runtime.control.channel import ChannelEvent, ChannelListener, Message
from smoke_training.runtime.control.session import (
    BEAT_S,
    FAREWELL_S,
    SETTLE_S,
    TICK_S,
    Line,
    NodeReport,
    ObservedTime,
    Over,
    RunEndedError,
)
from smoke_training.runtime.control.watchdog import Broke, Incident, NodeView, SilenceLimits, Watchdog, newest

_LIFE = [item.name for item in dataclasses.fields(RankLife) if item.name != "node"]


@dataclass
class _Peer:
    """State of one node, kept by node 0."""

    report: NodeReport = field(default_factory=NodeReport)
    last_report_at: float = 0.0  # observed time
    connected: bool = True
    bye: Message | None = None
    failures: list[Line] | None = None


class Coordinator:
    """Node 0; `has_address` reports whether the pod of another node has an address."""

    def __init__(
        self, plan: Plan, listener: ChannelListener, has_address: Callable[[int], bool] = lambda _: False
    ) -> None:
        self.plan, self._listener, self._has_address = plan, listener, has_address
        self.lines: list[Line] = []
        self.planned = False
        self._facts: list[NodeFacts] = []
        self._strangers = 0
        self._time = ObservedTime()
        self._peers: dict[int, _Peer] = {}
        self._watchdog = Watchdog(SilenceLimits(hang_s=plan.hang_timeout_s, start_s=plan.join_timeout_s))
        self._looks, self._next_beat = 0, 0.0
        # Nodes whose launcher is the culprit: nothing more is expected from there.
        self._unreachable = set[int | None]()

    def join(self, own: Callable[[], NodeFacts], deadline: float) -> None:
        """Wait until all nodes joined and match, then start them; RunEndedError on failure.

        Either way the `nodes` evidence is in `lines` afterwards.
        """
        began = time.monotonic()
        until = min(began + self.plan.join_timeout_s, deadline)
        complete: float | None = None
        mine, next_look = own(), began + 1.0
        try:
            while True:
                now = time.monotonic()
                if now >= next_look:  # a node's facts may change, as while a driver loads
                    mine, next_look = own(), now + 1.0
                for event in self._listener.poll(now):
                    self._met(event)
                found = self._nodes(mine, now - began)
                here = {facts.node for facts in found.joined} >= set(range(self.plan.nodes))
                complete = (complete or now) if here else None
                alike = world.nodes(self.plan, Evidence([found])).status is Verdict.PASS
                if alike or now > until or (complete and now - complete > SETTLE_S):
                    break
                time.sleep(TICK_S)
        finally:
            found = self._nodes(mine, time.monotonic() - began)
            missing = set(range(self.plan.nodes)) - {facts.node for facts in found.joined}
            starting = tuple(node for node in sorted(missing) if self._has_address(node))
            found = dataclasses.replace(found, starting=starting)
            self.lines.append(document_of(found))
        check = world.nodes(self.plan, Evidence([found]))
        if check.status is not Verdict.PASS:
            self._refuse(check.message)
        devices = next(iter(self._short_of_devices(found)), None)
        if devices is not None:
            self._refuse(devices)
        observed = self._time.at(time.monotonic())
        self._peers = {node: _Peer(last_report_at=observed) for node in range(self.plan.nodes)}
        self._listener.send({"type": "go"})

    def tick(self, own: NodeReport) -> None:
        """Receive reports, check that all ranks live; RunEndedError when the run must end."""
        now = time.monotonic()
        observed = self._time.at(now)
        self._peers[0].report, self._peers[0].last_report_at = own, observed
        for event in self._listener.poll(now):
            self._receive(event, observed)
        self.planned = self.planned or any(peer.report.planned for peer in self._peers.values())
        self._looks += 1
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            self._listener.send({"type": "beat", "planned": self.planned})
        views = [self._view(node, peer, observed) for node, peer in sorted(self._peers.items())]
        self._act(self._watchdog.decide(observed, views, self.planned))
        for node, peer in self._peers.items():
            reason = peer.bye.get("ended") if peer.bye else None
            if reason is not None:
                raise RunEndedError(f"node {node}: {reason}")

    def leave(self, own: NodeReport, ended: str | None) -> None:
        """Order the other nodes to end, if necessary, before the ranks of this node are ended."""
        if ended is not None:
            self._listener.send({"type": "stop", "reason": ended})
        if self._peers:
            self._peers[0].report = own

    def finish(self, failures: list[Line], deadline: float) -> None:
        """Receive the others' last reports, until the deadline; adds the `liveness` line if ranks ran."""
        self.lines += failures
        if not self._peers:
            return
        until = min(time.monotonic() + FAREWELL_S, deadline)
        while time.monotonic() < until and any(
            node != 0 and node not in self._unreachable and peer.connected and peer.failures is None
            for node, peer in self._peers.items()
        ):
            now = time.monotonic()
            for event in self._listener.poll(now):
                self._receive(event, self._time.at(now))
            time.sleep(TICK_S)
        for peer in self._peers.values():
            self.lines += peer.failures or []
        self.lines.append(document_of(self._liveness()))

    def over(self, over: Over) -> None:
        """Send the outcome to all nodes, and close the connections."""
        self._listener.send({"type": "over", **dataclasses.asdict(over)})
        until = time.monotonic() + 1.0
        while self._listener.connected() and time.monotonic() < until:
            self._listener.poll(time.monotonic())
            time.sleep(TICK_S)
        self._listener.close()

    # -- before the start ------------------------------------------------------------------------------

    def _met(self, event: ChannelEvent) -> None:
        facts = _facts(event.message) if event.kind in ("hello", "said") else None
        if event.kind == "stranger" or (event.kind == "hello" and facts is None):
            self._strangers += 1
        elif event.kind == "gone":
            self._facts = [known for known in self._facts if known.node != event.node]
        elif facts is not None and facts.node == event.node:
            repeated = event.kind == "said" or not event.message.get("same_plan")
            if repeated:  # the same launcher again, not a second one
                self._facts = [
                    known for known in self._facts if (known.node, known.host) != (facts.node, facts.host)
                ]
            self._facts.append(facts)

    def _nodes(self, mine: NodeFacts, waited: float) -> JoinedNodes:
        return JoinedNodes(
            wanted=self.plan.nodes,
            joined=(mine, *sorted(self._facts, key=lambda facts: facts.node)),
            strangers=self._strangers,
            waited_s=round(waited, 3),
            patience_s=self.plan.join_timeout_s,
        )

    def _short_of_devices(self, found: JoinedNodes) -> Iterator[str]:
        for facts in found.joined:
            forced = facts.device == "cpu" and facts.device_forced
            if facts.gpus < self.plan.gpus_per_node and not forced:
                yield f"node {facts.node} has {facts.gpus} of {self.plan.gpus_per_node} GPUs"

    def _refuse(self, reason: str) -> None:
        self.lines.append(document_of(StoppedEarly(reason="the nodes did not start")))
        raise RunEndedError(f"no rank was started: {reason}")

    # -- while it runs ---------------------------------------------------------------------------------

    def _receive(self, event: ChannelEvent, observed: float) -> None:
        peer = self._peers.get(event.node) if event.node is not None else None
        if peer is None or event.kind in ("hello", "stranger"):
            return
        peer.last_report_at = observed
        if event.kind == "gone":
            peer.connected = False
            return
        try:
            if isinstance(event.message.get("report"), dict):
                peer.report = decode(NodeReport, event.message["report"])
        except TypeError:
            return
        if event.message.get("type") == "bye":
            peer.bye = event.message
        elif event.message.get("type") == "failures":
            found = event.message.get("lines")
            lines = found if isinstance(found, list) else []
            peer.failures = [line for line in lines if isinstance(line, dict)]

    def _view(self, node: int, peer: _Peer, observed: float) -> NodeView:
        return NodeView(
            node=node,
            silent_s=round(observed - peer.last_report_at, 3),
            connected=peer.connected,
            said_bye=peer.bye is not None,
            **vars(peer.report),
        )

    def _act(self, incidents: tuple[Incident | Broke, ...]) -> None:
        if not incidents:
            return
        broke = [item for item in incidents if isinstance(item, Broke)]
        grave = [item for item in incidents if not isinstance(item, Broke)]
        self._unreachable = {b.node for b in grave if getattr(b, "what", None) == "launcher"}
        if grave:
            end = StoppedEarly(reason="the run was ended before it")
            self.lines += [document_of(item) for item in (*grave, end)]
            raise RunEndedError(liveness.alive(self.plan, Evidence(list(grave))).message)
        raise RunEndedError("; ".join(f"rank {b.rank} broke in phase {b.phase}: {b.words}" for b in broke))

    # -- at the end ------------------------------------------------------------------------------------

    def _liveness(self) -> Liveness:
        return Liveness(
            watched_s=round(self._time.at(time.monotonic()), 3),
            looks=self._looks,
            hang_timeout_s=self.plan.hang_timeout_s,
            ranks=tuple(
                RankLife(node=view.node, **{name: getattr(v, name) for name in _LIFE})
                for view, v in newest([self._view(node, peer, 0.0) for node, peer in self._peers.items()])
            ),
        )


def _facts(message: Message) -> NodeFacts | None:
    try:
        found: NodeFacts = decode(NodeFacts, message.get("facts"))
    except TypeError:
        return None
    return found
