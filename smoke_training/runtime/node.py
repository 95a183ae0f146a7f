"""A whole run on one node, from the plan to the exit code; node 0 also judges and records."""

import contextlib
import dataclasses
import json
import os
import signal
import threading
import time
import traceback
from types import FrameType

from smoke_training import evidence, files
from smoke_training import plan as plans
from smoke_training.evidence import document_of
from smoke_training.evidence.world import EarlyEnd, LauncherPreflight, PlanText, RankFailure
from smoke_training.judges.run import world
from smoke_training.model import EXIT_CODES, Check, Verdict
from smoke_training.names import CONTROL_PORT_OFFSET
from smoke_training.plan import Plan
from smoke_training.runtime import facts, host, output
from smoke_training.runtime.control import channel
from smoke_training.runtime.control.coordinator import Coordinator
from smoke_training.runtime.control.member import Member
from smoke_training.runtime.control.session import TICK_S, Line, RunEndedError
from smoke_training.runtime.control.watchdog import INTERRUPTED, SETTLE_S, words
from smoke_training.runtime.ending import Ending
from smoke_training.runtime.facts import NodeSettings
from smoke_training.runtime.launch import LocalRanks
from smoke_training.runtime.system_metrics import SystemSampler
from smoke_training.verdict_record import VerdictRecord

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)  # the last two by `sbatch --signal`
ADDRESS_PATIENCE = 2.5  # times the join timeout: a pod's name has no address before the pod is scheduled


class NodeRun:
    """One launcher's run."""

    def __init__(self, plan: Plan, place: NodeSettings) -> None:
        self.plan, self.place, self._ending = plan, place, Ending(plan, place)
        self._first = place.master_addr  # a name, until it is resolved
        self.began, self.ends = self._ending.began, self._ending.ends
        # The last seconds are for judging, writing and recording.
        self.deadline = self.ends - min(30.0, plan.timeout_s / 5)
        self._shown = 0
        self._own: list[Line] = [document_of(PlanText(document=plans.render(plan)))]
        self._session: Coordinator | Member | None = None
        self._ranks: LocalRanks | None = None
        self._sampler = SystemSampler(place.index)

    def run(self) -> int:
        """Run to the end in every case; returns the documented exit code."""
        for number in _STOPS:
            signal.signal(number, _stop)
        # For hangs that no deadline in the main thread can catch, such as a write to a file server.
        last_resort = threading.Timer(self.ends - time.monotonic(), self._give_up)
        last_resort.daemon = True
        last_resort.start()
        try:
            self._sampler.start()
            ended = self._try()
            # From here on the record is written; a second signal must not interrupt that.
            for number in _STOPS:
                signal.signal(number, signal.SIG_IGN)
            if self._session is not None:
                self._session.finish([*self._failures(), document_of(self._sampler.stop())], self.ends - 1)
                self._own += self._session.lines
            if ended is not None:
                self._own.append(document_of(EarlyEnd(reason=ended)))
            return self._written(ended)
        finally:
            last_resort.cancel()

    def _written(self, ended: str | None) -> int:
        session = self._session
        if self.place.index == 0:
            notify = session.over if isinstance(session, Coordinator) else lambda _: None
            return self._ending.conclude(self._samples(), notify)
        over = session.over_message if isinstance(session, Member) else None
        return self._ending.report(self._devices(), self._failures(), ended, over)

    def _try(self) -> str | None:
        """Run everything up to the end of the ranks; return why it ended early, or None."""
        try:
            if self.place.index == 0:
                # An earlier run's result must never be taken for this one's.
                files.remove(self.place.result)
            preflight = self._preflight()
            return self._measure(preflight) if preflight is not None else None
        except (RunEndedError, OSError) as error:
            return str(error) or type(error).__name__
        except Exception as error:  # an internal error still ends with a result
            traceback.print_exc()
            return f"the launcher broke: {type(error).__name__}: {error}"

    def _devices(self) -> Check:
        found = evidence.parse(json.dumps(line) for line in self._own)
        try:
            return world.devices(self.plan, found)
        except evidence.UndeliveredError:
            return Check(id="preflight.devices", status=Verdict.ERROR, message="no preflight took place")

    def _preflight(self) -> LauncherPreflight | None:
        """Inspect this machine, announce it, join the other nodes; None when node 0 has too few devices."""
        self._announce(facts.preflight(self.plan, shared_machine=False))
        patience = min(self.deadline, self.began + ADDRESS_PATIENCE * self.plan.join_timeout_s)
        self.place = dataclasses.replace(
            self.place, master_addr=facts.address(self.place.master_addr, patience)
        )
        shared = host.is_loopback(self.place.master_addr) and self.plan.nodes > 1
        found = facts.preflight(self.plan, shared)
        self._own.append(document_of(found))
        if self.place.index == 0 and self._devices().status is not Verdict.PASS:
            return None
        self._session = self._meet()
        self._session.join(
            lambda: facts.of_node(self.place.index, self.plan, facts.preflight(self.plan, shared)),
            self.deadline,
        )
        output.emit("joined", nodes=self.plan.nodes, ranks=found.ranks * self.plan.nodes, after_s=self._age())
        return found

    def _announce(self, found: LauncherPreflight) -> None:
        output.emit(
            "preflight",
            node=self.place.index,
            nodes=self.plan.nodes,
            ranks_planned=self.plan.ranks_per_node,
            device=found.device,
            gpus_found=found.devices_found,
            gpus_planned=self.plan.gpus_per_node,
            cpus=host.usable_cpus(),
            host=host.name(),
            master=f"{self.place.master_addr}:{self.place.master_port}",
            deadline_s=round(self.deadline - self.began, 1),
        )

    def _meet(self) -> Coordinator | Member:
        word, port = facts.digest_of(self.plan), self.place.master_port + CONTROL_PORT_OFFSET
        if self.place.index:
            return Member(
                self.plan, self.place.index, channel.ChannelCaller(self.place.master_addr, port), word
            )
        # A run of one node has no peers and needs no port.
        listening = channel.listen(self.place.master_addr, port) if self.plan.nodes > 1 else None
        listener = channel.ChannelListener(listening, word)
        return Coordinator(self.plan, listener, lambda node: facts.has_address(self._first, node))

    def _measure(self, preflight: LauncherPreflight) -> str | None:
        """Run the ranks of this node; return why they ended early, or None."""
        session = self._session
        assert session is not None
        ranks = self._ranks = LocalRanks(self.plan, self.place, preflight)
        ended: str | None = "the launcher broke"
        try:
            ranks.prepare()
            ranks.start()
            ended = self._watch(ranks, session)
        except (RunEndedError, OSError) as error:
            ended = str(error) or type(error).__name__
            ranks.dump_traces()
        finally:
            session.leave(ranks.last, ended)
            left = ranks.end()
            if left:
                output.emit("left_behind", pids=left)
        return ended

    def _watch(self, ranks: LocalRanks, session: Coordinator | Member) -> str | None:
        """Watch until torchrun ends; RunEndedError when the run must end before."""
        next_look = 0.0
        while (status := ranks.poll()) is None:
            now = time.monotonic()
            if now > self.deadline:
                raise RunEndedError("the deadline passed")
            if now >= next_look:
                next_look = now + TICK_S
                self._show_progress()
                session.tick(ranks.report(now))
                if session.planned:
                    ranks.hasten_restart(now)
            time.sleep(0.001 if ranks.hurried else TICK_S)
        self._show_progress()
        if status != 0:  # long enough for the session to find the cause
            for _ in range(int(2 * SETTLE_S / TICK_S)):
                session.tick(ranks.report(time.monotonic()))
                time.sleep(TICK_S)
        ranks.report(time.monotonic() + 1)
        return None if status == 0 else f"torchrun ended with status {status}"

    def _age(self) -> float:
        return round(time.monotonic() - self.began, 2)

    def _show_progress(self) -> None:
        lines = files.lines(self.place.scratch / "evidence.jsonl")
        for kind in (evidence.kind_of(line) for line in lines[self._shown :]):
            output.emit("measured", what=kind, after_s=self._age())
        self._shown = len(lines)

    def _failures(self) -> list[Line]:
        """Return failures of this node's ranks: from their files, else from their heartbeats."""
        found: list[Line] = []
        if self._ranks is None:
            return found
        planned = self._session is not None and self._session.planned
        # An unplanned restart fails again, only because it should not have happened.
        for path in sorted(self.place.scratch.glob("failure-*.json" if planned else "failure-0-*.json")):
            with contextlib.suppress(ValueError):
                found += [json.loads(line) for line in files.lines(path)]
        known = {line.get("rank") for line in found}
        for vital in self._ranks.broken():
            if vital.rank not in known and vital.phase != INTERRUPTED:
                found.append(
                    document_of(RankFailure(rank=vital.rank, phase=vital.phase, message=words(vital)))
                )
        return found

    def _samples(self) -> list[str]:
        """Return every evidence line: of the launchers, of the ranks, and of failures."""
        # Files from before this run's ranks were started belong to an earlier run.
        measured = files.lines(self.place.scratch / "evidence.jsonl") if self._ranks is not None else []
        return [json.dumps(line) for line in self._own] + measured

    def _give_up(self) -> None:
        """Exit from another thread: something blocks this launcher beyond the deadline."""
        text = f"ERROR the run did not end within {self.plan.timeout_s:.0f} s; its launcher was blocked"
        if self._ranks is not None:
            self._ranks.end()
        output.emit("gave_up", message=text)
        self._ending.terminate(VerdictRecord(str(Verdict.ERROR), text))
        os._exit(EXIT_CODES[Verdict.ERROR])


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in _STOPS:  # a second signal must not interrupt the end of the ranks
        signal.signal(other, signal.SIG_IGN)
    raise RunEndedError(f"stopped by {signal.Signals(number).name}")
