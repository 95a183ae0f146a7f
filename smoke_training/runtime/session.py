"""The launchers of a run as one: they start together, watch together and end together.

Node 0 coordinates. It waits for all nodes, lets them go when they are alike, watches the ranks of all of
them, and ends the run everywhere when somebody hangs or dies. A run of one node takes the same path without
a socket. All times are monotonic; silence counts in observed time, in which a pause of this very process
(a stopped launcher, a suspended machine) lasts at most a second.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from smoke_training.decode import decode
from smoke_training.evidence import Evidence
from smoke_training.evidence.liveness import Liveness, RankLife
from smoke_training.evidence.world import NodeFacts, Nodes
from smoke_training.judges.run import liveness, world
from smoke_training.model import Verdict
from smoke_training.plan import Plan
from smoke_training.runtime.channel import Caller, Event, Listener, Message, hello
from smoke_training.runtime.vitals import LOOK_AT_MOST_S, Vital
from smoke_training.runtime.watchdog import Broke, Incident, Limits, NodeView, Watchdog, newest

BEAT_S = 0.5
TICK_S = 0.05
SETTLE_S = 5.0  # for nodes that are all there to become alike: a driver that is still loading, say
ANSWER_MARGIN_S = 30.0  # node 0 may have started so much later than the node that calls it
FAREWELL_S = 15.0  # for the other nodes' last reports
KINDS = {"Hung": "hung", "Killed": "killed", "NeverStarted": "never_started"}

Line = dict[str, object]


class RunEndedError(RuntimeError):
    """The run cannot go on: a deadline passed, a signal arrived, a node is missing, somebody hangs."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a launcher tells of its own node while its ranks run."""

    vitals: tuple[Vital, ...] = ()
    planned: bool = False  # the kill that the plan asks for has been done here
    torchrun: int | None = None
    torchrun_stopped_s: float = 0.0
    oom_kills: int | None = None

    @property
    def urgent(self) -> tuple[object, ...]:
        """What node 0 should know at once when it changes."""
        dead = tuple((v.rank, v.status, v.gone, v.code) for v in self.vitals if v.gone or v.status == "BROKE")
        return (dead, self.planned, self.torchrun)


@dataclass(frozen=True, kw_only=True)
class Over:
    """How a run ended, as node 0 tells the others."""

    verdict: str
    headline: str
    exit_code: int


class ObservedTime:
    """Time in which the process that asks has been running: a gap between two calls counts at most 1 s."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0

    def at(self, now: float) -> float:
        """Observed seconds so far; `now` is a monotonic time."""
        if self._last is not None:
            self._total += min(max(0.0, now - self._last), LOOK_AT_MOST_S)
        self._last = now
        return self._total


@dataclass
class _Peer:
    """What node 0 remembers of one node."""

    report: Report = field(default_factory=Report)
    heard: float = 0.0  # observed time
    connected: bool = True
    bye: Message | None = None
    failures: list[Line] | None = None


class Coordinator:
    """Node 0."""

    def __init__(self, plan: Plan, listener: Listener) -> None:
        self.plan, self._listener = plan, listener
        self.lines: list[Line] = []
        self.planned = False
        self._facts: list[NodeFacts] = []
        self._strangers = 0
        self._time = ObservedTime()
        self._peers: dict[int, _Peer] = {}
        self._watchdog = Watchdog(Limits(hang_s=plan.hang_timeout_s, start_s=plan.join_timeout_s))
        self._looks, self._next_beat = 0, 0.0
        self._unheard = set[int]()  # nodes whose launcher is the culprit: nothing more will come from there

    def join(self, own: Callable[[], NodeFacts], deadline: float) -> None:
        """Wait until all nodes are there and alike, then let them go; RunEndedError when that fails.

        Either way the `nodes` evidence is in `lines` afterwards.
        """
        began = time.monotonic()
        until = min(began + self.plan.join_timeout_s, deadline)
        complete: float | None = None
        mine, next_look = own(), began + 1.0
        try:
            while True:
                now = time.monotonic()
                if now >= next_look:  # what a node has may still change, such as a driver that is loading
                    mine, next_look = own(), now + 1.0
                for event in self._listener.poll(now):
                    self._met(event)
                found = self._nodes(mine, now - began)
                here = {facts.node for facts in found.joined} >= set(range(self.plan.nodes))
                complete = (complete or now) if here else None
                if self._alike(found) or now > until or (complete and now - complete > SETTLE_S):
                    break
                time.sleep(TICK_S)
        finally:
            found = self._nodes(mine, time.monotonic() - began)
            self.lines.append({"kind": "nodes", **dataclasses.asdict(found)})
        check = world.nodes(self.plan, Evidence([found]))
        if check is not None and check.status is not Verdict.PASS:
            self._refuse(check.message)
        devices = next(iter(self._short_of_devices(found)), None)
        if devices is not None:
            self._refuse(devices)
        self._start()

    def tick(self, own: Report) -> None:
        """Hear the others, judge whether everybody lives; RunEndedError when the run must end."""
        now = time.monotonic()
        observed = self._time.at(now)
        self._peers[0].report, self._peers[0].heard = own, observed
        for event in self._listener.poll(now):
            self._heard(event, observed)
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

    def leave(self, own: Report, ended: str | None) -> None:
        """Tell the others to end if they have to, before the ranks of this node are ended."""
        if ended is not None:
            self._listener.send({"type": "stop", "reason": ended})
        if self._peers:
            self._peers[0].report = own

    def finish(self, failures: list[Line], deadline: float) -> None:
        """Take the others' last reports, at most to the deadline; adds the `liveness` line if ranks ran."""
        self.lines += failures
        if not self._peers:
            return
        until = min(time.monotonic() + FAREWELL_S, deadline)
        while time.monotonic() < until and self._waiting():
            now = time.monotonic()
            for event in self._listener.poll(now):
                self._heard(event, self._time.at(now))
            time.sleep(TICK_S)
        for peer in self._peers.values():
            self.lines += peer.failures or []
        self.lines.append({"kind": "liveness", **dataclasses.asdict(self._liveness())})

    def over(self, over: Over) -> None:
        """Tell everybody how it ended, and hang up."""
        self._listener.send({"type": "over", **dataclasses.asdict(over)})
        until = time.monotonic() + 1.0
        while self._listener.connected() and time.monotonic() < until:
            self._listener.poll(time.monotonic())
            time.sleep(TICK_S)
        self._listener.close()

    # -- before the start ------------------------------------------------------------------------------

    def _met(self, event: Event) -> None:
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

    def _nodes(self, mine: NodeFacts, waited: float) -> Nodes:
        return Nodes(
            wanted=self.plan.nodes,
            joined=(mine, *sorted(self._facts, key=lambda facts: facts.node)),
            strangers=self._strangers,
            waited_s=round(waited, 3),
            patience_s=self.plan.join_timeout_s,
        )

    def _alike(self, found: Nodes) -> bool:
        check = world.nodes(self.plan, Evidence([found]))
        return check is not None and check.status is Verdict.PASS

    def _short_of_devices(self, found: Nodes) -> Iterator[str]:
        for facts in found.joined:
            forced = facts.device == "cpu" and facts.device_forced
            if facts.gpus < self.plan.gpus_per_node and not forced:
                yield f"node {facts.node} has {facts.gpus} of {self.plan.gpus_per_node} GPUs"

    def _refuse(self, reason: str) -> None:
        self.lines.append({"kind": "stopped_early", "reason": "the nodes did not start"})
        raise RunEndedError(f"no rank was started: {reason}")

    def _start(self) -> None:
        observed = self._time.at(time.monotonic())
        self._peers = {node: _Peer(heard=observed) for node in range(self.plan.nodes)}
        self._listener.send({"type": "go"})

    # -- while it runs ---------------------------------------------------------------------------------

    def _heard(self, event: Event, observed: float) -> None:
        peer = self._peers.get(event.node) if event.node is not None else None
        if peer is None or event.kind in ("hello", "stranger"):
            return
        peer.heard = observed
        if event.kind == "gone":
            peer.connected = False
            return
        try:
            if isinstance(event.message.get("report"), dict):
                peer.report = decode(Report, event.message["report"])
        except TypeError:
            return
        if event.message.get("type") == "bye":
            peer.bye = event.message
        elif event.message.get("type") == "failures":
            lines = event.message.get("lines")
            peer.failures = (
                [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
            )

    def _view(self, node: int, peer: _Peer, observed: float) -> NodeView:
        report = peer.report
        return NodeView(
            node=node,
            vitals=report.vitals,
            silent_s=round(observed - peer.heard, 3),
            connected=peer.connected,
            said_bye=peer.bye is not None,
            torchrun=report.torchrun,
            torchrun_stopped_s=report.torchrun_stopped_s,
            oom_kills=report.oom_kills,
        )

    def _act(self, incidents: tuple[Incident | Broke, ...]) -> None:
        if not incidents:
            return
        broke = [item for item in incidents if isinstance(item, Broke)]
        grave = [item for item in incidents if not isinstance(item, Broke)]
        self._unheard = {
            b.node for b in grave if getattr(b, "what", None) == "launcher" and b.node is not None
        }
        for item in grave:
            self.lines.append({"kind": KINDS[type(item).__name__], **dataclasses.asdict(item)})
        if grave:
            self.lines.append({"kind": "stopped_early", "reason": "the run was ended before it"})
            check = liveness.alive(self.plan, Evidence(list(grave)))
            raise RunEndedError(check.message if check else "somebody hangs")
        raise RunEndedError("; ".join(f"rank {b.rank} broke in phase {b.phase}: {b.words}" for b in broke))

    # -- at the end ------------------------------------------------------------------------------------

    def _waiting(self) -> bool:
        return any(
            node != 0 and node not in self._unheard and peer.connected and peer.failures is None
            for node, peer in self._peers.items()
        )

    def _liveness(self) -> Liveness:
        return Liveness(
            watched_s=round(self._time.at(time.monotonic()), 3),
            looks=self._looks,
            hang_timeout_s=self.plan.hang_timeout_s,
            ranks=tuple(
                RankLife(
                    rank=v.rank,
                    node=view.node,
                    status=v.status,
                    phase=v.phase,
                    attempt=v.attempt,
                    sequence=v.sequence,
                    beats=v.beats,
                    longest_idle_s=v.longest_idle_s,
                )
                for view, v in newest([self._view(node, peer, 0.0) for node, peer in self._peers.items()])
            ),
        )


class Member:
    """Any other node."""

    def __init__(self, plan: Plan, index: int, caller: Caller, word: str) -> None:
        self.plan, self.index, self._caller, self._word = plan, index, caller, word
        self.lines: list[Line] = []
        self.planned = False
        self.over_message: Over | None = None
        self._time = ObservedTime()
        self._heard_at = 0.0
        self._next_beat, self._urgent = 0.0, tuple[object, ...]()
        self._refused: str | None = None
        self._left_early = True  # until its ranks have run to their end

    def join(self, own: Callable[[], NodeFacts], deadline: float) -> None:
        """Say hello until node 0 lets all go; RunEndedError with what it said, or that it said nothing."""
        until = min(time.monotonic() + self.plan.join_timeout_s + SETTLE_S + ANSWER_MARGIN_S, deadline)
        next_look = 0.0
        while (now := time.monotonic()) < until:
            if now >= next_look:
                self._caller.greet(hello(self._word, self.index, dataclasses.asdict(own())))
                next_look = now + 1.0
            for event in self._caller.poll(now):
                if event.kind == "gone":
                    if self._refused:
                        raise RunEndedError(self._refused)
                    self._caller.redial()
                    break
                if event.message.get("type") == "go":
                    self._heard_at = self._time.at(now)
                    return
                self._ordered(event)
            time.sleep(TICK_S)
        raise RunEndedError(self._refused or f"node 0 did not let node {self.index} start in time")

    def tick(self, own: Report) -> None:
        """Report, and obey; RunEndedError when node 0 ends the run, vanishes or falls silent."""
        now = time.monotonic()
        observed = self._time.at(now)
        if now >= self._next_beat or own.urgent != self._urgent:
            self._next_beat, self._urgent = now + BEAT_S, own.urgent
            self._caller.send({"type": "beat", "report": dataclasses.asdict(own)})
        for event in self._caller.poll(now):
            self._heard_at = observed
            if event.kind == "gone":
                raise RunEndedError("the launcher of node 0 vanished")
            self._ordered(event)
        silence = observed - self._heard_at
        if silence > self.plan.hang_timeout_s:
            raise RunEndedError(f"the launcher of node 0 has been silent for {silence:.0f} s")

    def leave(self, own: Report, ended: str | None) -> None:
        """Say goodbye before the ranks are ended, so that nobody takes their end for a murder."""
        report = dataclasses.asdict(own)
        self._left_early = ended is not None
        self._caller.send({"type": "bye", "ended": ended, "report": report})

    def finish(self, failures: list[Line], deadline: float) -> None:
        """Send what broke here; wait for how the run ended while node 0 is there, at most to the deadline.

        A node that left early waits only as long as node 0 may take to hear the others.
        """
        self._caller.send({"type": "failures", "lines": list(failures)})
        if self._left_early:
            deadline = min(deadline, time.monotonic() + 2 * FAREWELL_S)
        while self._caller.connected and self.over_message is None and time.monotonic() < deadline:
            for event in self._caller.poll(time.monotonic()):
                if event.message.get("type") == "over":
                    self._ended(event.message)
            time.sleep(TICK_S)
        self._caller.close()

    def _ordered(self, event: Event) -> None:
        match event.message.get("type"):
            case "beat":
                self.planned = self.planned or event.message.get("planned") is True
            case "refused":
                reason = event.message.get("reason")
                self._refused = f"node 0 refused node {self.index}: {reason}"
            case "stop":
                raise RunEndedError(f"ended by node 0: {event.message.get('reason')}")
            case "over":
                self._ended(event.message)
                raise RunEndedError(f"ended by node 0: {event.message.get('headline')}")

    def _ended(self, message: Message) -> None:
        try:
            self.over_message = decode(Over, {k: v for k, v in message.items() if k != "type"})
        except TypeError:
            self.over_message = None


def _facts(message: Message) -> NodeFacts | None:
    try:
        found = decode(NodeFacts, message.get("facts"))
    except TypeError:
        return None
    return found if isinstance(found, NodeFacts) else None
