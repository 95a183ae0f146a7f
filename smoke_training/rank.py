"""One rank: runs the probes in order and writes what they measured.

The first incarnation measures, trains the reference and is then interrupted by a kill; the second resumes.
"""

import contextlib
import dataclasses
import json
import os
import platform
import resource
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch._C._distributed_c10d import Store

from smoke_training import evidence, verdict
from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Training
from smoke_training.judges.network.rails import dead
from smoke_training.phases import PHASE
from smoke_training.plan import Plan, parse
from smoke_training.probes import group as gangs
from smoke_training.probes.context import Context, Line
from smoke_training.probes.network import collective, pairs, rails, reach, traffic
from smoke_training.probes.state import dcp, resume
from smoke_training.probes.storage import loader
from smoke_training.probes.storage import throughput as storage
from smoke_training.probes.training import fitness, parity, sharded, step
from smoke_training.runtime import heartbeat, host


class Recorder:
    """Rank 0's evidence file: one line per completed phase, on disk before the next phase starts."""

    def __init__(self, path: Path, writes: bool) -> None:
        self.path, self.writes = path, writes

    def add(self, line: dict[str, object]) -> None:
        """Append one line durably (other ranks: nothing)."""
        if self.writes:
            with self.path.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
                stream.flush()
                os.fsync(stream.fileno())


Measure = Callable[[Context], Iterator[Line]]

# In the order of `phases.PHASES`; `world` and `resume` are the rank's own, because they belong to its life.
PROBES: Mapping[str, Measure] = {
    "fitness": fitness.measure,
    "collectives": traffic.around(collective.measure),
    "pairs": pairs.measure,
    "rails": rails.measure,
    "training": step.measure,
    "sharded": sharded.measure,
    "parity": parity.measure,
    "storage": storage.measure,
    "loader": loader.measure,
    "checkpoint": dcp.measure,
}


def main() -> None:
    """Run this incarnation's phases; an exception is written down and ends the rank with status 1."""
    scratch = Path(sys.argv[1])
    plan = parse((scratch / "plan.json").read_text())
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    phase = ["join"]
    heartbeat.own().phase(phase[0])
    try:
        if os.environ["SMOKE_DEVICE"] == "cuda":
            os.environ.update(traffic.log_settings(scratch, os.environ))  # read when NCCL starts
        recorder = Recorder(scratch / "evidence.jsonl", os.environ["RANK"] == "0")
        timeout, device = float(os.environ["SMOKE_GROUP_TIMEOUT"]), os.environ["SMOKE_DEVICE"]
        gang = gangs.join(timeout, device, lambda store: _connected(store, plan, device, recorder))
        context = Context(gang=gang, plan=plan, scratch=scratch)
        if attempt == 0:
            _measure(context, recorder, phase)
        else:
            _enter(phase, "resume")
            for line in resume.resumed(context):
                recorder.add(line)
        _finish(gang, recorder)
    except Exception as error:
        _record_failure(scratch, attempt, phase[0], error)
        os._exit(1)


def _connected(store: Store, plan: Plan, device: str, recorder: Recorder) -> None:
    """Refuse to join over a rail that does not connect all nodes: gloo would wait on it, and name nobody."""
    rail = reach.over_first_rail(store, plan) if device == "cpu" else None
    if rail is None:
        return
    recorder.add({"kind": "rails", "backend": "gloo", "rails": [dataclasses.asdict(rail)]})
    accused = dead(Evidence([]), rail)
    raise ConnectionError("; ".join(item.evidence[0] for item in accused) or f"{rail.name}: {rail.error}")


def _measure(context: Context, recorder: Recorder, phase: list[str]) -> None:
    """All phases of the first incarnation; the last, `resume`, ends with a kill and does not come back."""
    gang, plan = context.gang, context.plan
    _enter(phase, "world")
    recorder.add(
        {"kind": "world", "wanted": int(os.environ["SMOKE_WORLD"]), "ranks": gang.gather(_facts(gang))}
    )
    for name in plan.chosen_phases:
        _enter(phase, name)
        if name not in PROBES or (PHASE[name].needs_peers and gang.world < 2):
            continue
        found = list(PROBES[name](context))
        for line in found:
            recorder.add(line)
        # Every rank holds the same evidence and so comes to the same answer: nobody is left waiting.
        if name == "training" and verdict.training_failed(_training(found), plan):
            recorder.add(
                {"kind": "stopped_early", "reason": "training does not scale; the rest was not tried"}
            )
            return
    if "resume" in plan.chosen_phases:
        _enter(phase, "reference")
        trial = resume.Trial(context)
        for line in trial.reference():
            recorder.add(line)
        recorder.add({"kind": "usage", "ranks": gang.gather(_usage(gang))})
        _enter(phase, "interrupted")
        for line in trial.interrupted():
            recorder.add(line)


def _enter(phase: list[str], name: str) -> None:
    """Remember the phase for whoever reads a failure, and tell it to the watchdog outside."""
    phase[0] = name
    heartbeat.own().phase(name)


def _finish(gang: gangs.Gang, recorder: Recorder) -> None:
    recorder.add({"kind": "usage", "ranks": gang.gather(_usage(gang))})
    gang.barrier()
    recorder.add({"kind": "finished"})
    gangs.leave()


def _training(lines: Sequence[Line]) -> Training:
    found = evidence.parse(json.dumps(line) for line in lines).of(Training)
    assert found is not None
    return found


def _facts(gang: gangs.Gang) -> dict[str, object]:
    memory = torch.cuda.get_device_properties(gang.device).total_memory if gang.cuda else None
    return {
        "rank": gang.rank,
        "node": gang.node,
        "host": host.name(),
        "pid": os.getpid(),
        "device": torch.cuda.get_device_name(gang.device) if gang.cuda else "cpu",
        "backend": gang.backend,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "kernel": platform.release(),
        "cpus": host.usable_cpus(),
        "nccl": gangs.nccl_version() if gang.cuda else None,
        "gpu_memory_bytes": memory,
    }


def _usage(gang: gangs.Gang) -> dict[str, object]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rank": gang.rank,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "max_rss_bytes": used.ru_maxrss * 1024,  # Linux reports KiB
        "gpu_memory_bytes": torch.cuda.max_memory_allocated(gang.device) if gang.cuda else None,
    }


def _record_failure(scratch: Path, attempt: int, phase: str, error: Exception) -> None:
    """Leave the reason behind. Losing a peer in the interrupted phase is the plan, not a failure."""
    rank = int(os.environ["RANK"])
    heartbeat.own().broke(f"{type(error).__name__}: {error}")  # first: the disk may be full
    traceback.print_exc()
    expected = phase == "interrupted" and "was to be killed" not in str(error)
    if not expected:
        line = {
            "kind": "failure",
            "rank": rank,
            "phase": phase,
            "message": f"{type(error).__name__}: {error}"[:2000],
        }
        with contextlib.suppress(OSError):  # without room on the disk the heartbeat has said it
            (scratch / f"failure-{attempt}-{rank}.json").write_text(json.dumps(line) + "\n")
    sys.stderr.flush()
