"""A whole run on one node, from the plan to the exit code; node 0 also judges and records."""

import os
import platform
import shutil
import signal
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from smoke_training import evidence, report, verdict
from smoke_training.evidence import Evidence
from smoke_training.model import EXIT_CODES, Judgement, Verdict
from smoke_training.plan import Plan
from smoke_training.record import document, sink
from smoke_training.runtime import code, files, host, launch, output
from smoke_training.runtime.launch import Gang, Node, RunEndedError
from smoke_training.verdict import Preflight

ADDRESS_PATIENCE_S = 300.0
UNKNOWN = Preflight(device="unknown", devices_found=0, device_forced=False, ranks=1)


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
        # The last seconds belong to judging, writing and recording.
        self.deadline = self.began + plan.timeout_s - min(30.0, plan.timeout_s / 5)
        self.scratch = place.work_dir / f"node-{place.index}"
        self._shown = 0

    def run(self) -> int:
        """Run to the end whatever happens; returns the exit code of the contract."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)
        preflight, ended = UNKNOWN, None
        try:
            if self.place.index == 0:
                self.place.result.unlink(
                    missing_ok=True
                )  # an earlier run's result must never pass for this one's
            preflight = self._preflight()
            if verdict.devices(self.plan, preflight).status is Verdict.PASS:
                ended = self._measure(preflight)
        except (RunEndedError, OSError) as error:
            ended = str(error) or type(error).__name__
        finally:
            # From here on the run is being written down; a second signal must not cut that short.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        found = self._evidence()
        judged = verdict.judge(self.plan, preflight, found, ended)
        return (
            self._conclude(preflight, found, judged) if self.place.index == 0 else self._report(judged, ended)
        )

    def _preflight(self) -> Preflight:
        patience = min(self.deadline, self.began + ADDRESS_PATIENCE_S)
        self.address = launch.address(self.place.master_addr, patience)
        shared = host.is_loopback(self.address) and self.plan.nodes > 1
        found = launch.preflight(self.plan, dict(os.environ), shared)
        output.emit(
            "preflight",
            node=self.place.index,
            nodes=self.plan.nodes,
            ranks=found.ranks,
            device=found.device,
            gpus_found=found.devices_found,
            gpus_planned=self.plan.gpus_per_node,
            cpus=host.usable_cpus(),
            host=host.name(),
            master=f"{self.address}:{self.place.master_port}",
            deadline_s=round(self.deadline - self.began, 1),
        )
        return found

    def _measure(self, preflight: Preflight) -> str | None:
        """Run the gang; why it ended early, or None."""
        node = Node(
            index=self.place.index,
            master_addr=self.address,
            master_port=self.place.master_port,
            scratch=self.scratch,
            preflight=preflight,
        )
        gang = Gang(self.plan, node)
        try:
            gang.prepare()
            status = gang.run(self.deadline, self._show_progress)
        finally:
            left = gang.end()
            if left:
                output.emit("left_behind", pids=left)
        return None if status == 0 else f"torchrun ended with status {status}"

    def _show_progress(self) -> None:
        lines = _lines(self.scratch / "evidence.jsonl")
        for kind in (evidence.kind_of(line) for line in lines[self._shown :]):
            output.emit("measured", what=kind, after_s=round(time.monotonic() - self.began, 2))
        self._shown = len(lines)

    def _evidence(self) -> Evidence:
        lines = _lines(self.scratch / "evidence.jsonl")
        for failure in sorted(self.scratch.glob("failure-*.json")):
            lines += _lines(failure)
        return evidence.parse(lines)

    def _report(self, judged: Judgement, ended: str | None) -> int:
        """The end of a node that does not judge: 0 unless its own ranks or devices broke."""
        devices = judged.checks[0]
        own = [item for item in self._evidence().failures if item.rank is not None]
        broken = devices.status is not Verdict.PASS or ended is not None or bool(own)
        text = report.node_message(self.place.index, devices, own, ended) if broken else "done"
        output.emit("node", node=self.place.index, broken=broken, message=text)
        self._terminate(text)
        self._tidy()
        if not broken:
            return 0
        return EXIT_CODES[Verdict.FAIL if devices.status is Verdict.FAIL else Verdict.ERROR]

    def _conclude(self, preflight: Preflight, found: Evidence, judged: Judgement) -> int:
        """Write the result, then the termination message, then the MLflow run; the exit code."""
        when = document.Circumstances(
            run_id=uuid.uuid4().hex,
            started=self.started.isoformat(timespec="milliseconds"),
            duration_s=time.monotonic() - self.began,
            python=platform.python_version(),
            kernel=platform.release(),
            code_sha256=code.digest(),
            environment_sha256=document.environment_digest(os.environ),
        )
        result = document.build(self.plan, preflight, found, judged, when)
        message = report.termination_message(judged)
        files.write_json(self.place.result, result)
        self._terminate(message)
        output.emit("verdict", verdict=str(judged.verdict), headline=report.headline(judged))
        output.say(message)
        if judged.verdict is Verdict.ERROR:
            output.say(
                "\n".join(["--- torchrun.log, last lines", *_lines(self.scratch / "torchrun.log")[-30:]])
            )
        synced = sink.record(result, found, os.environ, self.began + self.plan.timeout_s)
        output.emit("mlflow", **synced)
        files.write_json(self.place.result, {**result, "mlflow": synced})
        self._tidy()
        return EXIT_CODES[judged.verdict]

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


def _stop(number: int, _frame: FrameType | None) -> None:
    raise RunEndedError(f"stopped by {signal.Signals(number).name}")


def _lines(path: Path) -> list[str]:
    """Complete lines of a text file; none if it does not exist."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return []
    return text.splitlines()
