"""Decide which ranks hang or were killed, from the launchers' reports (pure: no clock, no processes).

Evidence is weighed in the order in which one fault explains another: a launcher that is gone explains dead
ranks, a dead rank explains broken ones, a stopped rank explains the ranks that wait for it. An explained
failure is not accused.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smoke_training.evidence.liveness import Hung, Killed, NeverStarted
from smoke_training.runtime.control.session import NodeReport
from smoke_training.runtime.control.vitals import Vital

# A rank that computes, or waits for a CPU or a disk, gets so much more time than an idle one: it
# may be slow, which another check reports. The same goes for phases that wait for storage or for a kill.
PATIENCE_FACTOR = 4.0
QUIET_SHARE = 0.2  # busy for less than this share of the time without a heartbeat
WAITING_PHASES = frozenset({"storage", "loader", "checkpoint", "reference", "interrupted", "resume"})
STARTING_PHASES = frozenset({"", "start", "join", "world"})
# The ends of the ranks of one process group reach the launchers at nearly the same time, in any order.
SETTLE_S = 1.5
CERTAIN_S = 0.3  # once the signal is known
INTERRUPTED = "interrupted"  # the phase of the planned kill

Incident = Hung | Killed | NeverStarted


@dataclass(frozen=True, kw_only=True)
class NodeView(NodeReport):
    """One node as seen by node 0: its last report, and the state of its launcher.

    `silent_s` since that report, in observed time; `connected` until it disconnects; `said_bye` when
    that launcher announced its end.
    """

    node: int
    silent_s: float = 0.0
    connected: bool = True
    said_bye: bool = False


@dataclass(frozen=True, kw_only=True)
class Broke:
    """A rank that ended with an unexplained exception: no matter of liveness."""

    rank: int
    node: int
    phase: str
    words: str


@dataclass(frozen=True, kw_only=True)
class SilenceLimits:
    """Limits of silence, in seconds."""

    hang_s: float
    start_s: float


class Watchdog:
    """Decides repeatedly; its only state is since when something has been wrong."""

    def __init__(self, limits: SilenceLimits) -> None:
        self._limits = limits
        self._dead_since: float | None = None
        self._first_dead: frozenset[int] = frozenset()
        self._attempt_since = (0, 0.0)

    def decide(self, now: float, nodes: Sequence[NodeView], planned: bool) -> tuple[Incident | Broke, ...]:
        """Return failures, () without any; `now` is observed time, `planned`: the planned kill happened."""
        attempt = int(planned)
        if attempt != self._attempt_since[0]:
            self._attempt_since = (attempt, now)
        lost = tuple(
            Killed(what="launcher", node=node.node, phase=_phase(node), oom_kills=node.oom_kills)
            for node in nodes
            if not node.connected and not node.said_bye
        )
        if lost:
            return lost
        # A launcher that announced its end ends its ranks itself.
        dead = [view for view in _ranks(nodes) if _died(view[1], attempt) and not view[0].said_bye]
        if dead:
            return self._explained(now, dead, nodes)
        self._dead_since = None
        return (
            tuple(_stopped(nodes, self._limits.hang_s))
            or tuple(_silent(nodes, self._limits.hang_s))
            or tuple(self._unstarted(now, nodes, attempt))
            or tuple(_behind(nodes, self._limits))
            or tuple(_stalled(nodes, self._limits))
        )

    def _explained(
        self, now: float, dead: list[tuple[NodeView, Vital]], nodes: Sequence[NodeView]
    ) -> tuple[Incident | Broke, ...]:
        if self._dead_since is None:
            self._dead_since, self._first_dead = now, frozenset(v.rank for _, v in dead)
        silent = [(node, v) for node, v in dead if v.status == "RUNNING" and (v.code is None or v.code < 0)]
        by_signal = any(v.signal in _KILLERS for _, v in silent)
        if now - self._dead_since < (CERTAIN_S if by_signal else SETTLE_S):
            return ()
        torchruns = tuple(_lost_torchruns(nodes))
        if torchruns:
            return torchruns
        # Losing a peer may abort a process too: only signals from outside accuse several.
        certain = [(node, v) for node, v in silent if v.signal in _KILLERS]
        if certain:
            return tuple(_killed(node, v) for node, v in certain)
        causes = [(node, v) for node, v in dead if not v.closed]
        unrecorded = (node for node, v in causes if v.code is None and v.status == "RUNNING")
        if not causes or any(node.torchrun for node in unrecorded):
            return ()  # torchrun will report the rank for which it ended these, or it broke itself
        first = [view for view in causes if view[1].rank in self._first_dead] or causes
        silent = [view for view in first if view in silent]
        if silent:
            return (_killed(*silent[0]),)
        first = [(node, v) for node, v in first if v.phase != INTERRUPTED] or first
        return tuple(Broke(rank=v.rank, node=node.node, phase=v.phase, words=words(v)) for node, v in first)

    def _unstarted(self, now: float, nodes: Sequence[NodeView], attempt: int) -> Iterator[NeverStarted]:
        waited = now - self._attempt_since[1]
        if waited < self._limits.start_s:
            return
        for node, vital in newest(nodes):
            if vital.attempt < attempt:
                yield NeverStarted(
                    rank=vital.rank, node=node.node, attempt=attempt, waited_s=round(waited, 1)
                )


_KILLERS = frozenset({9, 11, 7, 4, 2, 1, 3})  # KILL, SEGV, BUS, ILL, INT, HUP, QUIT; not ABRT, not TERM


def words(vital: Vital) -> str:
    """Return a failed rank's own report, else its exit status."""
    return vital.words or f"it ended with status {vital.code} without a report"


def _ranks(nodes: Sequence[NodeView]) -> Iterator[tuple[NodeView, Vital]]:
    for node in nodes:
        for vital in node.vitals:
            yield node, vital


def newest(nodes: Sequence[NodeView]) -> list[tuple[NodeView, Vital]]:
    """Return every rank in its newest attempt."""
    found = {v.rank: (node, v) for node, v in sorted(_ranks(nodes), key=lambda view: view[1].attempt)}
    return [found[rank] for rank in sorted(found)]


def _alive(nodes: Sequence[NodeView]) -> list[tuple[NodeView, Vital]]:
    """Return ranks that run, in the newest attempt."""
    living = [
        (node, v)
        for node, v in _ranks(nodes)
        if not node.said_bye and not v.gone and v.attempt >= 0 and v.status == "RUNNING"
    ]
    last = max((v.attempt for _, v in living), default=0)
    return [(node, v) for node, v in living if v.attempt == last]


def _died(vital: Vital, attempt: int) -> bool:
    """Report whether a rank's end needs an explanation: not in an attempt that the plan has ended."""
    return vital.attempt >= attempt and (
        vital.status == "BROKE" or (vital.gone and vital.status == "RUNNING")
    )


def _lost_torchruns(nodes: Sequence[NodeView]) -> Iterator[Killed]:
    for node in nodes:
        if node.torchrun is not None and node.torchrun < 0:
            phase, signal = _phase(node), -node.torchrun
            yield Killed(
                what="torchrun", node=node.node, phase=phase, signal=signal, oom_kills=node.oom_kills
            )


def _phase(node: NodeView) -> str | None:
    return next((vital.phase for vital in node.vitals if vital.phase), None)


def _killed(node: NodeView, vital: Vital) -> Killed:
    return Killed(
        what="rank", rank=vital.rank, node=node.node, phase=vital.phase, sequence=vital.sequence,
        pid=vital.pid, signal=vital.signal, oom_kills=node.oom_kills,
    )  # fmt: skip


def _stopped(nodes: Sequence[NodeView], limit: float) -> Iterator[Hung]:
    foremost = max((v.sequence for _, v in _alive(nodes)), default=None)
    for node, vital in _ranks(nodes):
        if not vital.gone and min(vital.stopped_s, vital.idle_s) >= limit:
            yield _hung("stopped", node, vital, foremost, limit)
    for node in nodes:
        if node.torchrun is None and node.torchrun_stopped_s >= limit:
            yield Hung(
                how="stopped", what="torchrun", node=node.node, phase=_phase(node), foremost=foremost,
                state="T", idle_s=node.torchrun_stopped_s, limit_s=limit,
            )  # fmt: skip


def _silent(nodes: Sequence[NodeView], limit: float) -> Iterator[Hung]:
    for node in nodes:
        if node.silent_s >= limit and not node.said_bye:
            phase, silent = _phase(node), node.silent_s
            yield Hung(
                how="silent", what="launcher", node=node.node, phase=phase, idle_s=silent, limit_s=limit
            )


def _behind(nodes: Sequence[NodeView], limits: SilenceLimits) -> Iterator[Hung]:
    """Yield ranks that entered fewer exchanges than all others, and were idle for too long."""
    living = _alive(nodes)
    done = any(v.status == "DONE" for _, v in _ranks(nodes))
    if not living:
        return
    last, foremost = min(v.sequence for _, v in living), max(v.sequence for _, v in living)
    behind = [(node, v) for node, v in living if v.sequence == last]
    if last == foremost and not done:
        return
    limit = [patience(v, limits) for _, v in behind]
    if all(v.idle_s >= wait for (_, v), wait in zip(behind, limit, strict=True)):
        for (node, vital), wait in zip(behind, limit, strict=True):
            yield _hung("behind", node, vital, foremost, wait)


def _stalled(nodes: Sequence[NodeView], limits: SilenceLimits) -> Iterator[Hung]:
    """Yield a stall: all ranks have entered the same exchange and it does not end."""
    living = _alive(nodes)
    if not living:
        return
    limit = max(patience(v, limits) for _, v in living)
    limit = max(limit, 2 * limits.hang_s)
    if len({v.sequence for _, v in living}) == 1 and all(v.idle_s >= limit for _, v in living):
        first = living[0][1]
        yield Hung(
            how="stalled", what="gang", phase=first.phase, sequence=first.sequence, foremost=first.sequence,
            idle_s=min(v.idle_s for _, v in living), busy_s=max(v.busy_s for _, v in living), limit_s=limit,
        )  # fmt: skip


def patience(vital: Vital, limits: SilenceLimits) -> float:
    """Return the seconds without a heartbeat that are no hang yet, for a rank in its phase."""
    if vital.phase in STARTING_PHASES:
        return max(limits.start_s, limits.hang_s)
    quiet = vital.busy_s < QUIET_SHARE * vital.idle_s
    return limits.hang_s * (1.0 if quiet and vital.phase not in WAITING_PHASES else PATIENCE_FACTOR)


def _hung(how: str, node: NodeView, vital: Vital, foremost: int | None, limit: float) -> Hung:
    assert math.isfinite(limit)
    return Hung(
        how=how, what="rank", rank=vital.rank, node=node.node, phase=vital.phase, sequence=vital.sequence,
        foremost=foremost, state=vital.state, idle_s=vital.idle_s, busy_s=vital.busy_s, limit_s=limit,
    )  # fmt: skip
