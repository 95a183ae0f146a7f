"""A whole run on one node, from the plan to the exit code; node 0 also judges and records."""

import contextlib
import dataclasses
import itertools
import json
import os
import platform
import shutil
import signal
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from smoke_training import evidence, gate, report, verdict
from smoke_training import plan as plans
from smoke_training.evidence.world import Failure, Preflight
from smoke_training.judges.run import world
from smoke_training.launchers.validation import CONTROL_PORT_OFFSET
from smoke_training.model import EXIT_CODES, Check, Judgement, Verdict
from smoke_training.plan import Plan
from smoke_training.record import alert, book, document
from smoke_training.record.sampler import SystemSampler
from smoke_training.runtime import channel, code, facts, files, host, launch, output
from smoke_training.runtime.guard import LastResort
from smoke_training.runtime.launch import Gang, Node
from smoke_training.runtime.session import (
    TICK_S,
    Coordinator,
    Line,
    Member,
    Over,
    RunEndedError,
)
from smoke_training.runtime.watchdog import INTERRUPTED, SETTLE_S

ADDRESS_PATIENCE = 2.5  # of the join timeout: a pod's name has no address before the pod is scheduled
SAMPLES_SUFFIX = ".samples.jsonl"
RECORD_MARGIN_S = 3.0  # before the very end: to write down whether the record reached the tracking server


@dataclass(frozen=True, kw_only=True)
class Place:
    """What the container tells its node: index, meeting point, folders."""

    index: int
    master_addr: str
    master_port: int
    work_dir: Path
    result: Path
    termination: Path | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], nodes: int) -> "Place":
        """Read NODE_RANK, MASTER_ADDR, MASTER_PORT, WORK_DIR; ValueError lists every fault."""
        needed = ("NODE_RANK", "MASTER_ADDR", "WORK_DIR")
        problems = [f"{name}: missing from the environment" for name in needed if not environment.get(name)]
        index, port = environment.get("NODE_RANK") or "0", environment.get("MASTER_PORT") or "29500"
        if not (index.isdigit() and int(index) < nodes):
            problems.append(f"NODE_RANK: got {index!r}; must be 0 .. {nodes - 1}, the plan has {nodes} nodes")
        if not (port.isdigit() and 0 < int(port) < 65536):
            problems.append(f"MASTER_PORT: got {port!r}; must be 1 .. 65535")
        if problems:
            raise ValueError("\n".join(problems))
        work_dir = Path(environment["WORK_DIR"])
        message = environment.get("TERMINATION_MESSAGE_PATH")
        return cls(
            index=int(index),
            master_addr=environment["MASTER_ADDR"],
            master_port=int(port),
            work_dir=work_dir,
            result=work_dir / "result.json",
            termination=Path(message) if message else None,
        )


class NodeRun:
    """One launcher's run."""

    def __init__(self, plan: Plan, place: Place) -> None:
        self.plan, self.place = plan, place
        self.began, self.started = time.monotonic(), datetime.now(UTC)
        self.ends = self.began + plan.timeout_s
        # The last seconds belong to judging, writing and recording.
        self.deadline = self.ends - min(30.0, plan.timeout_s / 5)
        self.scratch = place.work_dir / f"node-{place.index}"
        self._shown = 0
        self._own: list[Line] = [{"kind": "plan", "document": plans.render(plan)}]
        self._session: Coordinator | Member | None = None
        self._gang: Gang | None = None
        self._run_id = uuid.uuid4().hex
        self._sampler = SystemSampler(place.index)

    def run(self) -> int:
        """Run to the end whatever happens; returns the exit code of the contract."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)
        with LastResort(self.ends, self._give_up):
            self._sampler.start()
            ended = self._try()
            # From here on the run is being written down; a second signal must not cut that short.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            if self._session is not None:
                self._session.finish([*self._failures(), self._sampler.stop()], self.ends - 1)
                self._own += self._session.lines
            if ended is not None:
                self._own.append({"kind": "ended", "reason": ended})
            return self._conclude() if self.place.index == 0 else self._report(ended)

    def _try(self) -> str | None:
        """Everything up to the end of the ranks; why it ended early, or None."""
        try:
            if self.place.index == 0:
                # An earlier run's result must never pass for this one's.
                self.place.result.unlink(missing_ok=True)
            preflight = self._preflight()
            return self._measure(preflight) if preflight is not None else None
        except (RunEndedError, OSError) as error:
            return str(error) or type(error).__name__
        except Exception as error:  # a fault of ours still ends with a result
            traceback.print_exc()
            return f"the launcher broke: {type(error).__name__}: {error}"

    def _devices(self) -> Check:
        """The check that decides whether ranks are started at all."""
        found = evidence.parse(json.dumps(line) for line in self._own)
        judged = world.devices(self.plan, found)
        return judged or Check(
            id="preflight.devices", status=Verdict.ERROR, required=True, message="no preflight took place"
        )

    def _preflight(self) -> Preflight | None:
        """Look at this machine, say so, meet the other nodes; None when node 0 has too few devices."""
        alone = launch.preflight(self.plan, os.environ, shared_machine=False)
        self._announce(alone)
        patience = min(self.deadline, self.began + ADDRESS_PATIENCE * self.plan.join_timeout_s)
        self.address = launch.address(self.place.master_addr, patience)
        shared = host.is_loopback(self.address) and self.plan.nodes > 1

        def look() -> Preflight:
            return launch.preflight(self.plan, os.environ, shared)

        found = look()
        self._own.append({"kind": "preflight", **dataclasses.asdict(found)})
        if self.place.index == 0 and self._devices().status is not Verdict.PASS:
            return None
        self._session = self._meet()
        self._session.join(
            lambda: facts.of_node(self.place.index, self.plan, look(), os.environ), self.deadline
        )
        output.emit("joined", nodes=self.plan.nodes, ranks=found.ranks * self.plan.nodes, after_s=self._age())
        return found

    def _announce(self, found: Preflight) -> None:
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
            return Member(self.plan, self.place.index, channel.Caller(self.address, port), word)
        # A run of one node has nobody to talk to, and no port that could be taken.
        listening = channel.listen(self.address, port) if self.plan.nodes > 1 else None
        return Coordinator(self.plan, channel.Listener(listening, word))

    def _measure(self, preflight: Preflight) -> str | None:
        """Run the gang; why it ended early, or None."""
        node = Node(
            index=self.place.index,
            master_addr=self.address,
            master_port=self.place.master_port,
            scratch=self.scratch,
            preflight=preflight,
        )
        session = self._session
        assert session is not None
        gang = self._gang = Gang(self.plan, node)
        ended: str | None = "the launcher broke"
        try:
            gang.prepare()
            gang.start()
            ended = self._watch(gang, session)
        except (RunEndedError, OSError) as error:
            ended = str(error) or type(error).__name__
            gang.dump_traces()
        finally:
            session.leave(gang.last, ended)
            left = gang.end()
            if left:
                output.emit("left_behind", pids=left)
        return ended

    def _watch(self, gang: Gang, session: Coordinator | Member) -> str | None:
        """Until torchrun ends; RunEndedError when the run is to end before it does."""
        next_look = 0.0
        while (status := gang.poll()) is None:
            now = time.monotonic()
            if now > self.deadline:
                raise RunEndedError("the deadline passed")
            if now >= next_look:
                next_look = now + TICK_S
                self._show_progress()
                session.tick(gang.report(now))
                if session.planned:
                    gang.hasten_restart(now)
            time.sleep(0.001 if gang.hurried else TICK_S)
        self._show_progress()
        if status != 0:  # long enough for the session to find out why
            for _ in range(int(2 * SETTLE_S / TICK_S)):
                session.tick(gang.report(time.monotonic()))
                time.sleep(TICK_S)
        gang.report(time.monotonic() + 1)
        return None if status == 0 else f"torchrun ended with status {status}"

    def _age(self) -> float:
        return round(time.monotonic() - self.began, 2)

    def _show_progress(self) -> None:
        lines = files.lines(self.scratch / "evidence.jsonl")
        for kind in (evidence.kind_of(line) for line in lines[self._shown :]):
            output.emit("measured", what=kind, after_s=self._age())
        self._shown = len(lines)

    def _failures(self) -> list[Line]:
        """How ranks of this node broke: what they left in files, else what their heartbeats say."""
        found: list[Line] = []
        if self._gang is None:
            return found
        planned = self._session is not None and self._session.planned
        # A restart that nobody planned breaks again, and only says that it should not have happened.
        for path in sorted(self.scratch.glob("failure-*.json" if planned else "failure-0-*.json")):
            with contextlib.suppress(ValueError):
                found += [json.loads(line) for line in files.lines(path)]
        told = {line.get("rank") for line in found}
        for vital in self._gang.broken():
            if vital.rank not in told and vital.phase != INTERRUPTED:
                found.append(
                    {
                        "kind": "failure",
                        "rank": vital.rank,
                        "phase": vital.phase,
                        "message": vital.words or f"ended with status {vital.code} without a word",
                    }
                )
        return found

    def _samples(self) -> list[str]:
        """Every evidence line: what the launchers know, what the ranks measured, how they broke."""
        # What lies there before ranks of this run were started is an earlier run's.
        measured = files.lines(self.scratch / "evidence.jsonl") if self._gang is not None else []
        return [json.dumps(line) for line in self._own] + measured

    def _report(self, ended: str | None) -> int:
        """The end of a node that does not judge: 0 unless its own ranks or devices broke."""
        devices = self._devices()
        own = list(evidence.parse(json.dumps(line) for line in self._failures()).all_of(Failure))
        over = self._session.over_message if isinstance(self._session, Member) else None
        broken = devices.status is not Verdict.PASS or ended is not None or bool(own)
        text = report.node_message(self.place.index, devices, own, ended) if broken else "done"
        if over is not None and broken:  # whoever reads only this node's message learns the verdict first
            text = f"{over.headline}\n{text}"[: report.TERMINATION_LIMIT]
        output.emit("node", node=self.place.index, broken=broken, message=text)
        self._terminate(text)
        self._tidy()
        if not broken:
            return 0
        if devices.status is Verdict.FAIL:
            return EXIT_CODES[Verdict.FAIL]
        if self.plan.preemptible and ended is not None and signal.SIGTERM.name in ended:
            return gate.exit_code(self.plan, Verdict.SKIPPED)
        return (over.exit_code if over else 0) or EXIT_CODES[Verdict.ERROR]

    def _conclude(self) -> int:
        """Judge; write samples, result, termination message, then the MLflow run; the exit code."""
        samples, until = self._samples(), self.ends - RECORD_MARGIN_S
        samples += book.baseline_lines(self.plan, evidence.parse(samples), os.environ, until)
        unwritten = self._write(
            self.place.result.with_suffix(SAMPLES_SUFFIX), "".join(f"{s}\n" for s in samples).encode()
        )
        result, judged = self._judged(samples + unwritten)
        unwritten += self._write(self.place.result, _rendered(result))
        if unwritten:
            result, judged = self._judged(samples + unwritten)
            with contextlib.suppress(OSError):
                self.place.result.unlink(missing_ok=True)  # half a record must not pass for a whole one
            output.emit("result", **result)  # the log is the only place left for it
        message = report.termination_message(judged, self.plan.accept)
        self._terminate(message)
        code = gate.exit_code(self.plan, judged.verdict)
        output.emit("verdict", verdict=str(judged.verdict), headline=report.headline(judged))
        output.say(message)
        if judged.verdict is Verdict.ERROR:
            said = last_words(files.lines(self.scratch / "torchrun.log"))
            output.say("\n".join(["--- torchrun.log, last lines of the ranks", *said]))
        if isinstance(self._session, Coordinator):
            self._session.over(
                Over(verdict=str(judged.verdict), headline=report.headline(judged), exit_code=code)
            )
        kept = None if unwritten else self.place.result
        final = book.publish(result, samples + unwritten, kept, os.environ, until)
        output.emit("mlflow", **final["mlflow"])
        if self.plan.alert_topic_arn is not None:
            output.emit("alert", **alert.send(self.plan, final, until))
        self._tidy()
        return code

    def _judged(self, samples: list[str]) -> tuple[Line, Judgement]:
        found = evidence.parse(samples)
        judged = verdict.judge(self.plan, found)
        when = document.Circumstances(
            run_id=self._run_id,
            started=self.started.isoformat(timespec="milliseconds"),
            duration_s=time.monotonic() - self.began,
            python=platform.python_version(),
            kernel=platform.release(),
            code_sha256=code.digest(),
            environment_sha256=document.environment_digest(os.environ),
        )
        return document.build(self.plan, found, judged, when), judged

    def _write(self, path: Path, content: bytes) -> list[str]:
        """Write one file of the record; the evidence line that says why that was not possible, or nothing."""
        try:
            files.write_durably(path, content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return [json.dumps({"kind": "unrecorded", "path": str(path), "reason": reason})]
        return []

    def _give_up(self) -> None:
        """The very last resort, on another thread: something holds up this launcher beyond the deadline."""
        text = f"ERROR the run did not end within {self.plan.timeout_s:.0f} s; its launcher was held up"
        if self._gang is not None:
            self._gang.end()
        output.emit("gave_up", message=text)
        self._terminate(text)
        os._exit(EXIT_CODES[Verdict.ERROR])

    def _terminate(self, text: str) -> None:
        """The termination message; a path that cannot be written costs the message, not the result."""
        if self.place.termination is None:
            return
        try:
            self.place.termination.write_text(text)
        except OSError as error:
            output.emit("termination_message", written=False, reason=str(error))

    def _tidy(self) -> None:
        """Drop the bulky leftovers; evidence and log stay for audits."""
        for name in ("checkpoints", "torn", "trial"):
            shutil.rmtree(self.scratch / name, ignore_errors=True)


def last_words(log: Sequence[str], most: int = 30) -> Sequence[str]:
    """What the ranks said last. The traceback of torchrun that follows says only that one of them failed."""
    ranks = itertools.takewhile(lambda line: "failed (exitcode:" not in line, log)
    return list(ranks)[-most:] or log[-most:]


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in (signal.SIGTERM, signal.SIGINT):  # ending the ranks must not be interrupted by a second one
        signal.signal(other, signal.SIG_IGN)
    raise RunEndedError(f"stopped by {signal.Signals(number).name}")


def _rendered(document: Line) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
