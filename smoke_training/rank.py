"""One rank: runs the probes in order and writes what they measured.

The first incarnation measures, trains the reference and is then interrupted by a kill; the second resumes.
"""

import json
import os
import platform
import resource
import sys
import traceback
from pathlib import Path

import torch

from smoke_training import verdict
from smoke_training.decode import decode
from smoke_training.evidence import Training
from smoke_training.plan import Plan, kill_schedule, parse
from smoke_training.probes import collective, parity, resume, step
from smoke_training.probes import gang as gangs
from smoke_training.runtime import host


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


def main() -> None:
    """Run this incarnation's phases; an exception is written down and ends the rank with status 1."""
    scratch = Path(sys.argv[1])
    plan = parse((scratch / "plan.json").read_text())
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    phase = ["join"]
    try:
        gang = gangs.join(float(os.environ["SMOKE_JOIN_TIMEOUT"]), os.environ["SMOKE_DEVICE"])
        recorder = Recorder(scratch / "evidence.jsonl", gang.rank == 0)
        if attempt == 0:
            _measure(gang, plan, scratch, recorder, phase)
        else:
            phase[0] = "resume"
            schedule = kill_schedule(plan.seed, gang.world)
            recorder.add(resume.resumed(gang, plan.seed, schedule, scratch))
            _finish(gang, recorder)
    except Exception as error:
        _record_failure(scratch, attempt, phase[0], error)
        os._exit(1)


def _measure(gang: gangs.Gang, plan: Plan, scratch: Path, recorder: Recorder, phase: list[str]) -> None:
    phase[0] = "world"
    recorder.add(
        {"kind": "world", "wanted": int(os.environ["SMOKE_WORLD"]), "ranks": gang.gather(_facts(gang))}
    )
    phase[0] = "collective"
    recorder.add(collective.sweep(gang, plan.seed))
    phase[0] = "training"
    if gang.world > 1:
        found = step.measure(gang, plan.seed, lambda line: verdict.training_decided(_training(line), plan))
        recorder.add(found)
        if verdict.training_failed(_training(found), plan):
            # Every rank holds the same evidence and so comes to the same answer: nobody is left waiting.
            recorder.add({"kind": "stopped_early", "reason": "training does not scale; resume was not tried"})
            _finish(gang, recorder)
    phase[0] = "parity"
    recorder.add(parity.measure(gang, plan.seed))
    phase[0] = "reference"
    schedule = kill_schedule(plan.seed, gang.world)
    replica = resume.Replica(gang, plan.seed)
    recorder.add(resume.reference(gang, replica, schedule, scratch))
    recorder.add({"kind": "usage", "ranks": gang.gather(_usage(gang))})
    phase[0] = "interrupted"
    resume.interrupted(gang, replica, schedule, scratch)


def _finish(gang: gangs.Gang, recorder: Recorder) -> None:
    recorder.add({"kind": "usage", "ranks": gang.gather(_usage(gang))})
    gang.barrier()
    recorder.add({"kind": "finished"})
    gangs.leave()


def _training(line: dict[str, object]) -> Training:
    found = decode(Training, json.loads(json.dumps({k: v for k, v in line.items() if k != "kind"})))
    assert isinstance(found, Training)
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
    traceback.print_exc()
    expected = phase == "interrupted" and "was to be killed" not in str(error)
    if not expected:
        line = {
            "kind": "failure",
            "rank": rank,
            "phase": phase,
            "message": f"{type(error).__name__}: {error}"[:2000],
        }
        (scratch / f"failure-{attempt}-{rank}.json").write_text(json.dumps(line) + "\n")
    sys.stderr.flush()
