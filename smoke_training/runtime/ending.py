"""Write the outcome of a node's part of a run: judged on node 0, recorded, and reported."""

import contextlib
import itertools
import json
import os
import platform
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from smoke_training import evidence, files, verdict
from smoke_training.evidence.world import RankFailure, Unrecorded
from smoke_training.model import EXIT_CODES, Check, Judgement, Verdict
from smoke_training.names import RESULT_COPIES
from smoke_training.plan import Plan
from smoke_training.record import alert, copies, document, run_record, termination
from smoke_training.runtime import facts, output
from smoke_training.runtime.control.session import Line, Over
from smoke_training.runtime.facts import NodeSettings
from smoke_training.verdict_record import VerdictRecord, limit_of

SAMPLES_SUFFIX = ".samples.jsonl"
Content = TypeVar("Content")
RECORD_MARGIN_S = 3.0  # before the end: to write whether the record reached the tracking server


class Ending:
    """Writer of one node's outcome; created when the run begins."""

    def __init__(self, plan: Plan, place: NodeSettings) -> None:
        self.plan, self.place = plan, place
        self.began, self.started = time.monotonic(), datetime.now(UTC)
        self.ends = self.began + plan.timeout_s
        self._run_id = uuid.uuid4().hex

    def report(self, devices: Check, failures: Sequence[Line], ended: str | None, over: Over | None) -> int:
        """Report a node that does not judge; 0 unless its own ranks or devices failed."""
        own = list(evidence.parse(json.dumps(line) for line in failures).all_of(RankFailure))
        broken = devices.status is not Verdict.PASS or ended is not None or bool(own)
        of_run = (over.verdict, over.headline) if over is not None else None
        record = termination.node_record(self.place.index, devices, own, ended, of_run) if broken else None
        output.emit("node", node=self.place.index, broken=broken, message=record.text if record else "done")
        self.terminate(record)
        self._tidy()
        if not broken:
            return 0
        if devices.status is Verdict.FAIL:
            return EXIT_CODES[Verdict.FAIL]
        if self.plan.preemptible and ended is not None and signal.SIGTERM.name in ended:
            return self.plan.exit_code(Verdict.SKIPPED)
        return (over.exit_code if over else 0) or EXIT_CODES[Verdict.ERROR]

    def conclude(self, samples: list[str], notify: Callable[[Over], None]) -> int:
        """Judge; write samples, result, termination message, then the MLflow run; return the exit code.

        `notify` is called with the outcome as soon as it is certain.
        """
        until = self.ends - RECORD_MARGIN_S
        samples = samples + run_record.baseline_lines(self.plan, evidence.parse(samples), os.environ, until)
        path = self.place.result.with_suffix(SAMPLES_SUFFIX)
        unwritten = _write(files.write_durably, path, "".join(f"{s}\n" for s in samples).encode())
        result, judged = self._judged(samples + unwritten)
        unwritten += _write(files.write_json, self.place.result, result)
        if unwritten:
            result, judged = self._judged(samples + unwritten)
            with contextlib.suppress(OSError):
                files.remove(self.place.result)  # a partial record must not look complete
            output.emit("result", **result)  # only the log is left for it
        message = termination.termination_message(judged, self.plan.accept)
        self.terminate(termination.record(judged, self.plan.accept))
        status = self.plan.exit_code(judged.verdict)
        output.emit("verdict", verdict=str(judged.verdict), headline=termination.headline(judged))
        output.say(message)
        if judged.verdict is Verdict.ERROR:
            text = last_words(files.lines(self.place.scratch / "torchrun.log"))
            output.say("\n".join(["--- torchrun.log, last lines of the ranks", *text]))
        notify(Over(verdict=str(judged.verdict), headline=termination.headline(judged), exit_code=status))
        kept = None if unwritten else self.place.result
        final = run_record.publish(result, samples + unwritten, kept, os.environ, until)
        output.emit("mlflow", **final["mlflow"])
        if folder := os.environ.get(RESULT_COPIES):
            output.emit("copy", **copies.send(folder, kept, until))
        if self.plan.alerts:
            output.emit("alert", **alert.send(self.plan, final, until))
        self._tidy()
        return status

    def _judged(self, samples: list[str]) -> tuple[Line, Judgement]:
        found = evidence.parse(samples)
        judged = verdict.judge(self.plan, found)
        when = document.Circumstances(
            run_id=self._run_id,
            started=self.started.isoformat(timespec="milliseconds"),
            duration_s=time.monotonic() - self.began,
            python=platform.python_version(),
            kernel=platform.release(),
            code_sha256=facts.code_digest(),
            environment_sha256=document.environment_digest(os.environ),
        )
        return document.build(self.plan, found, judged, when), judged

    def terminate(self, record: VerdictRecord | None) -> None:
        """Write the termination message; an unwritable path does not affect the result."""
        if self.place.termination is None:
            return
        try:
            self.place.termination.write_text(record.line(limit_of(os.environ)) if record else "done")
        except OSError as error:
            output.emit("termination_message", written=False, reason=str(error))

    def _tidy(self) -> None:
        """Remove large temporary files; evidence and log stay for audits."""
        for name in ("checkpoints", "torn", "trial"):
            shutil.rmtree(self.place.scratch / name, ignore_errors=True)


def last_words(log: Sequence[str], most: int = 30) -> Sequence[str]:
    """Return the ranks' last lines; torchrun's own traceback after them is omitted."""
    ranks = itertools.takewhile(lambda line: "failed (exitcode:" not in line, log)
    return list(ranks)[-most:] or log[-most:]


def _write(write: Callable[[Path, Content], None], path: Path, content: Content) -> list[str]:
    """Write one file of the record; return an evidence line for a failure, or nothing."""
    try:
        write(path, content)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return [evidence.line_of(Unrecorded(path=str(path), reason=reason))]
    return []
