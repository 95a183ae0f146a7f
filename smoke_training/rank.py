"""One rank: run the probes in order and write their evidence.

The first attempt measures, trains the reference and is killed; the restarted one resumes.
"""

import contextlib
import os
import platform
import resource
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch._C._distributed_c10d import Store

from smoke_training.evidence import Evidence, Record, line_of
from smoke_training.evidence.fabric import Collective
from smoke_training.evidence.links import Rails
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import (
    Finished,
    RankFacts,
    RankFailure,
    RankUsage,
    ResourceUsage,
    StoppedEarly,
    World,
)
from smoke_training.formulae.bandwidth import ALL_REDUCE
from smoke_training.judges.network.rails import dead
from smoke_training.judges.sampling import VerdictSampling
from smoke_training.judges.training import step as judged
from smoke_training.model import Verdict
from smoke_training.phases import PHASE
from smoke_training.plan import Plan, parse
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group, bus_of, join, leave, nccl_version
from smoke_training.probes.network import collective, pairs, rails, reach, traffic
from smoke_training.probes.state import resume, timing
from smoke_training.probes.storage import loader
from smoke_training.probes.storage import throughput as storage
from smoke_training.probes.training import burn, fitness, gpus, parity, sharded, step
from smoke_training.runtime import heartbeat, host
from smoke_training.runtime.devices import DeviceReader


class Recorder:
    """Output of a rank: its phase for the watchdog, and on rank 0 the evidence file."""

    def __init__(self, path: Path, writes: bool) -> None:
        self.path, self.writes, self.phase = path, writes, ""

    def enter(self, phase: str) -> None:
        """Set the phase, for the record of a failure and for the watchdog."""
        self.phase = phase
        heartbeat.own().phase(phase)

    def add(self, records: Iterable[Record]) -> None:
        """Append a line for each, on disk before the next is measured (other ranks: nothing)."""
        for record in records:
            if self.writes:
                with self.path.open("a") as stream:
                    stream.write(line_of(record) + "\n")
                    stream.flush()
                    os.fsync(stream.fileno())


Measure = Callable[[ProbeContext], Iterator[Record]]

# In the order of `phases.PHASES`; `world` and `resume` are part of the rank itself.
PROBES: Mapping[str, Measure] = {
    "fitness": fitness.measure,
    "gpus": gpus.measure,
    "burn": burn.measure,
    "collectives": traffic.around(collective.measure),
    "pairs": pairs.measure,
    "rails": rails.measure,
    "training": step.measure,
    "sharded": sharded.measure,
    "parity": parity.measure,
    "storage": storage.measure,
    "loader": loader.measure,
    "checkpoint": timing.measure,
}


def main() -> None:
    """Run the phases of this attempt; an exception is recorded and ends the rank with status 1."""
    scratch = Path(sys.argv[1])
    plan = parse((scratch / "plan.json").read_text())
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    recorder = Recorder(scratch / "evidence.jsonl", os.environ["RANK"] == "0")
    recorder.enter("join")
    cpus, placed = host.usable_cpus(), None
    try:
        timeout, device = float(os.environ["SMOKE_GROUP_TIMEOUT"]), os.environ["SMOKE_DEVICE"]
        if device == "cuda":
            os.environ.update(traffic.log_settings(scratch, os.environ))  # read when NCCL starts
            placed = host.run_near(bus_of(int(os.environ["LOCAL_RANK"])))  # NCCL's threads inherit it
        group = join(timeout, device, lambda store: _connected(store, plan, device, recorder))
        context = ProbeContext(group=group, plan=plan, scratch=scratch, sampling=VerdictSampling(plan))
        if attempt == 0:
            _measure(context, recorder, _facts(group, cpus, placed))
        else:
            recorder.enter("resume")
            recorder.add(resume.resumed(context))
        recorder.add([_usages(group)])
        group.barrier()
        recorder.add([Finished()])
        leave()
    except Exception as error:
        _record_failure(scratch, attempt, recorder.phase, error)
        os._exit(1)


def _connected(store: Store, plan: Plan, device: str, recorder: Recorder) -> None:
    """Raise if the first rail does not connect all nodes: gloo would hang on it, without naming a node."""
    rail = reach.over_first_rail(store, plan) if device == "cpu" else None
    if rail is None:
        return
    recorder.add([Rails(backend="gloo", rails=(rail,))])
    accused = dead(Evidence(), rail)
    raise ConnectionError("; ".join(item.evidence[0] for item in accused) or f"{rail.name}: {rail.error}")


def _measure(context: ProbeContext, recorder: Recorder, facts: RankFacts) -> None:
    """All phases of the first attempt; the last, `resume`, ends with a kill and does not return."""
    group, plan = context.group, context.plan
    sweep: Collective | None = None
    failed = False
    reader = DeviceReader(group.node) if group.local_rank == 0 else None
    recorder.enter("world")
    recorder.add([World(wanted=int(os.environ["SMOKE_WORLD"]), ranks=tuple(group.gather(facts)))])
    for name in plan.chosen_phases:
        recorder.enter(name)
        if name not in PROBES or (PHASE[name].needs_peers and group.world < 2):
            continue
        for found in PROBES[name](context):
            recorder.add([found])  # one by one: a phase that is interrupted leaves what it had
            if isinstance(found, Collective) and found.name == ALL_REDUCE:
                sweep = found
                context = replace(context, sampling=VerdictSampling(plan, sweep))
            failed |= isinstance(found, Training) and Verdict.FAIL in judged.statuses(plan, found, sweep)
        # Where training fails already, further phases would only cost time. Every rank has the same evidence
        # and so decides the same: none is left waiting.
        if failed:
            recorder.add([StoppedEarly(reason="training does not scale; the rest was not tried")])
            break
    # Before a rank is killed: its peers count errors then.
    recorder.add(
        item for item in group.gather(None if reader is None else reader.changes()) if item is not None
    )
    if failed:
        return
    if "resume" in plan.chosen_phases:
        recorder.enter("reference")
        trial = resume.KillTrial(context)
        recorder.add(trial.reference())
        recorder.add([_usages(group)])
        recorder.enter("interrupted")
        recorder.add(trial.interrupted())


def _facts(group: Group, cpus: int, placed: str | None) -> RankFacts:
    memory = torch.cuda.get_device_properties(group.device).total_memory if group.cuda else None
    return RankFacts(
        rank=group.rank,
        node=group.node,
        host=host.name(),
        pid=os.getpid(),
        device=torch.cuda.get_device_name(group.device) if group.cuda else "cpu",
        backend=group.backend,
        python=platform.python_version(),
        torch=str(torch.__version__),
        kernel=platform.release(),
        cpus=cpus,
        placed=placed,
        nccl=nccl_version() if group.cuda else None,
        gpu_memory_bytes=memory,
    )


def _usages(group: Group) -> ResourceUsage:
    """Return the resources used by every rank so far, on all ranks."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    mine = RankUsage(
        rank=group.rank,
        cpu_seconds=used.ru_utime + used.ru_stime,
        max_rss_bytes=used.ru_maxrss * 1024,  # Linux reports KiB
        gpu_memory_bytes=torch.cuda.max_memory_allocated(group.device) if group.cuda else None,
    )
    return ResourceUsage(ranks=tuple(group.gather(mine)))


def _record_failure(scratch: Path, attempt: int, phase: str, error: Exception) -> None:
    """Record the reason. Losing a peer in the interrupted phase is planned, not a failure."""
    rank = int(os.environ["RANK"])
    message = f"{type(error).__name__}: {error}"
    heartbeat.own().broke(message)  # first: the disk may be full
    traceback.print_exc()
    expected = phase == "interrupted" and "was to be killed" not in str(error)
    if not expected:
        failure = RankFailure(rank=rank, phase=phase, message=message[:2000])
        with contextlib.suppress(OSError):  # with a full disk the heartbeat has reported it
            (scratch / f"failure-{attempt}-{rank}.json").write_text(line_of(failure) + "\n")
    sys.stderr.flush()
