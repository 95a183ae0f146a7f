"""Judge the log of a training loop, as torchtitan writes it: time per step and loss (pure).

A line has a step and a loss, and a time: seconds per step, tokens per second (`tps`, `wps`), or its own clock
(pytorch/torchtitan `torchtitan/components/metrics.py`).
"""

import datetime
import math
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from smoke_training.model import WORST_FIRST, Cause, Check, Culprit, Judgement, Measured, Verdict
from smoke_training.reader import DocumentError
from smoke_training.statistics import changepoint
from smoke_training.statistics.estimators import ACQUIT_ALPHA
from smoke_training.statistics.medians import median_interval, warm_up
from smoke_training.verdict import overall

KEPT = 5000  # steps; of a longer log every second, fourth ... one is kept
BLOCKS = 100
TOLERATED = 1.15  # times as long: as of ranks of our own runs
LEAST = 10  # steps with a time
_COLOUR = re.compile(r"\x1b?\[\d+(?:;\d+)*m")
_STEP = re.compile(r"\b(?:step|iter(?:ation)?)\s*[:=]?\s*(\d+)\b", re.IGNORECASE)
_LOSS = re.compile(
    r"(?:\b|train_)loss(?: train)?\s*[:=]?\s*([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))", re.IGNORECASE
)
_SPEED = re.compile(r"\b(?:tps|wps|tokens?(?:/s|_per_sec\w*))\s*[:=]?\s*([\d,]*[1-9][\d,.]*)", re.IGNORECASE)
_TIME = re.compile(
    r"(?:(?:step|iter\w*)[ _]tim(e|ing in)|time[ _]per[ _](step|iter\w*)|\btime(?= \d[\d.]* ?m?s\b))"
    r"\W*(ms|s)?\W*(?P<value>\d[\d.]*)\s*(ms|s)?",
    re.IGNORECASE,
)
_EACH = re.compile(r"(?P<value>\d[\d.]*)\s*(ms|s)(?:ec)?(?:/(?:step|iter|batch)| \|)")
_BATCH = re.compile(r"global batch size:\s*([1-9]\d{0,8})\b")  # Megatron: it may grow (--rampup-batch-size)
_NORM = re.compile(r"grad[_ ]norm\s*[:=]?\s*[-+]?(?:nan|inf)", re.IGNORECASE)
# Of torch.distributed, torchrun, CUDA, Open MPI and Slurm.
_ENDS = (
    *("Watchdog caught collective", "ChildFailedError", "failed (exitcode", "OutOfMemoryError"),
    *("CUDA out of memory", "exited on signal", "srun: error"),
)
_NAN = re.compile(r"nan iterations:\s*[1-9]")  # Megatron: these steps have no loss
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")
_RANK = re.compile(r"\[rank(\d+)\]")


@dataclass
class StepLog:
    """Steps in order with their durations: seconds, or seconds per token or sample where `unit` says so."""

    unit: str = "s"
    steps: list[int] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)  # of the same steps; 0 where none is printed
    totals: dict[int, tuple[int, float]] = field(default_factory=dict)  # steps and their sum by batch size
    losses: int = 0
    trained: bool = False  # a loss that is no placeholder, with a gradient norm that is a number
    failure: str | None = None  # the message of a run that ended with an error
    bad: tuple[int, str] | None = None  # first step with a loss that is no number
    restarts: int = 0
    jumps: int = 0
    _stride: int = 1
    _seen: int = 0

    def add(self, step: int, duration: float, batch: int) -> None:
        """Keep a step; memory is constant, whatever the length of the log."""
        self._seen += 1
        count, total = self.totals.get(batch, (0, 0.0))
        self.totals[batch] = (count + (duration > 0), total + max(duration, 0.0))
        if len(self.totals) > KEPT:
            raise DocumentError([f"step {step}: more than {KEPT} batch sizes; judge a part"])
        if self._seen % self._stride == 0 and duration > 0:
            self.steps.append(step)
            self.durations.append(duration)
            self.batches.append(batch)
        if len(self.steps) > KEPT:
            self.steps, self.durations = self.steps[1::2], self.durations[1::2]
            self.batches, self._stride = self.batches[1::2], self._stride * 2

    @property
    def settled(self) -> list[float]:
        """Durations without the first ones, which compile and fill caches."""
        return self.durations[max(1, warm_up(self.durations)) :]

    def of(self, batch: int) -> tuple[list[float], float]:
        """Settled durations of steps of a batch size, and the mean of all of them, kept or not."""
        first = len(self.durations) - len(self.settled)
        times = [t if each == batch else 0 for t, each in zip(self.durations, self.batches, strict=True)]
        early, (count, total) = [t for t in times[:first] if t], self.totals.get(batch, (0, 0.0))
        return [t for t in times[first:] if t], (total - sum(early)) / max(count - len(early), 1)


def parse(lines: Iterable[str]) -> StepLog:
    """Read a log; of several ranks the first that prints. DocumentError where there are too few steps."""
    found, rank, last, failure = StepLog(), None, None, None
    for raw in lines:
        failure = raw.strip()[:200] if any(word in raw for word in _ENDS) else failure
        if "loss" not in raw.lower():
            continue
        line = _COLOUR.sub("", raw)
        step, loss, prefix = _STEP.search(line), _LOSS.search(line), _RANK.search(line)
        if step and _NAN.search(line):
            found.bad = found.bad or (int(step[1]), "nan")
        if not (step and loss) or "validat" in line:
            continue
        number, clock = int(step[1]), _clock(line)
        if not math.isfinite(float(loss[1])):
            found.bad = found.bad or (number, loss[1])
        found.trained |= float(loss[1]) != -1 and not _NORM.search(line)
        rank = rank or (prefix and prefix[1])
        if prefix and prefix[1] != rank:
            continue
        if last and number == last[0]:  # of another rank, unnamed
            continue
        found.losses += 1
        if last and number < last[0]:
            found.restarts, found.failure = found.restarts + 1, found.failure or failure
            failure, last = None, (number, clock)
            continue  # its first step compiles and fills caches
        failure = None  # the steps go on
        batch = int(match[1]) if (match := _BATCH.search(line)) else 0
        elapsed = (clock - last[1]) / (number - last[0]) if clock and last and last[1] else 0.0
        found.jumps += elapsed < 0
        if match := _TIME.search(line) or _EACH.search(line):
            found.unit = "s per sample" if batch else found.unit
            scale = (1000 if "ms" in match.groups() else 1) * max(batch, 1)
            found.add(number, float(match["value"]) / scale, batch)
        elif match := _SPEED.search(line):
            found.unit = "s per token"
            found.add(number, 1 / float(match[1].replace(",", "")), batch)
        else:
            found.add(number, elapsed, batch)
        last = (number, clock)
    found.failure = found.failure or failure
    if len(found.durations) < LEAST and found.bad is None and found.failure is None:
        example = "`step: 10  loss: 9.88  tps: 7,026`, or a time per step, or a clock"
        raise DocumentError(
            [f"{len(found.durations)} steps with loss and time, {LEAST} needed, as {example}"]
        )
    return found


def _clock(line: str) -> float | None:
    match = _CLOCK.search(line)
    try:
        return datetime.datetime.fromisoformat(match[0].replace(",", ".")).timestamp() if match else None
    except ValueError:
        return None


def judge(log: StepLog, earlier: StepLog | None) -> Judgement:
    """Judge losses and steadiness; speed only against an earlier log of the same job."""
    checks = [_losses(log)]
    if log.failure:
        text = f"a run ended with an error: {log.failure}"
        checks += [Check(id="run.completed", status=Verdict.ERROR, message=text, next_action="Repeat it.")]
    if len(log.durations) >= LEAST:
        checks += [_steady(log), _speed(log, earlier)]
    notes = ["Not in such a log: which rank or node is slow, machine type, data and model; one run."]
    notes += [f"It ends at step {step}; whether the job went on, it does not say." for step in log.steps[-1:]]
    if log.restarts or log.jumps:
        notes.append(f"Steps start again {log.restarts} times; the clock goes back {log.jumps} times.")
    return Judgement(verdict=overall(checks), checks=tuple(checks), notes=tuple(notes))


def _losses(log: StepLog) -> Check:
    good = Check(id="numerics.finite", status=Verdict.PASS, message=f"all {log.losses} losses are finite")
    if log.bad is None:  # torchtitan prints -1 on ranks without the last stage of a pipeline
        text = "every loss is -1, or the gradient norm of its step is no number"
        action = "Give the log of the rank that computes the loss, and look at its gradients."
        doubt = replace(good, status=Verdict.INCONCLUSIVE, message=text, next_action=action)
        return good if log.trained else doubt
    text = f"the loss is {log.bad[1]} at step {log.bad[0]}"
    accused = Culprit("stack", "loss", Cause.NAN, (text,))
    action = "Repeat from the checkpoint before it, with the same data, on other machines."
    return replace(good, status=Verdict.FAIL, message=text, culprits=(accused,), next_action=action)


def _steady(log: StepLog) -> Check:
    """FAIL where steps take longer for good, by more than is tolerated of a slow rank."""
    length = -(-len(log.settled) // BLOCKS)
    blocks = [statistics.median(log.settled[at : at + length]) for at in range(0, len(log.settled), length)]
    change = changepoint.find([math.log(block) for block in blocks])
    if change is None or change.ratio < 1:
        text = "no lasting slowdown of 10 % within the run"
        return Check(id="training.steady", status=Verdict.PASS, message=text)
    step = log.steps[len(log.durations) - len(log.settled) + change.block * length]
    text = f"from about step {step} on each step takes {change.ratio:.2f} times as long"
    return Check(
        id="training.steady",
        status=Verdict.FAIL if change.ratio > TOLERATED else Verdict.INCONCLUSIVE,
        culprits=(Culprit("stack", "steps", Cause.UNKNOWN, (text,), score=change.ratio),),
        message=text,
        next_action="Look at clocks, power and other load of the machines at that time.",
    )


def _speed(log: StepLog, earlier: StepLog | None) -> Check:
    compared = list[tuple[Verdict, str]]()
    text = "no_reference, not judged: no source says what this job needs"
    if earlier is not None and earlier.unit != log.unit:
        text = f"the earlier log is in {earlier.unit}, this one in {log.unit}: not comparable"
    elif earlier is not None:
        text = f"no batch size has {LEAST} steps in both logs: not comparable"
        compared = list(_compared(log, earlier))
    worst = min(compared, key=lambda found: WORST_FIRST.index(found[0]), default=(Verdict.INCONCLUSIVE, text))
    action = "Look at clocks, links, storage and other load of the machines where steps are slow."
    action = action if compared else "Give a log of the same job on accepted machines."
    now, count = statistics.median(log.settled), len(log.settled)
    return Check(
        id="training.speed",
        status=worst[0],
        measured=Measured(value=now, unit=log.unit, n=count, estimator="median", reason="see message"),
        message=f"{now:.4g} {log.unit}: {worst[1]}",
        next_action=None if worst[0] is Verdict.PASS else action,
    )


def _compared(log: StepLog, earlier: StepLog) -> Iterator[tuple[Verdict, str]]:
    """Yield a verdict on each batch size of both logs: means, which see rare long steps, have to pass too."""
    for batch in log.totals:
        (now, mean), (then, before) = log.of(batch), earlier.of(batch)
        if min(len(now), len(then)) >= LEAST:
            new, old = median_interval(now, ACQUIT_ALPHA), median_interval(then, ACQUIT_ALPHA)
            low, high, whole = new.low / old.high, new.high / old.low, mean / before
            status = Verdict.PASS if max(high, whole) <= TOLERATED else Verdict.INCONCLUSIVE
            text = f"{new.estimate / old.estimate:.3f} times the earlier log's ({low:.3f} .. {high:.3f})"
            text += f", {whole:.3f} by means" + f", at batch size {batch}" * bool(batch)
            yield Verdict.FAIL if low > TOLERATED else status, text
