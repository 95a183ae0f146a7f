"""Compare a new run with the figures of earlier accepted runs (pure).

A baseline is the figures of one run with their fingerprint. With another fingerprint it does not apply.
Ratios are of *performance*: for a rate new / old, for a time old / new; below 1 is always worse.

A figure has regressed when the whole deciding interval of its ratio lies below `LIMIT`. The interval depends
on the knowledge of the run-to-run spread:

- at least `MIN_RUNS` accepted runs: the new figure against their geometric mean, Student's t prediction
  interval with their own spread (never less than the new run's own uncertainty);
- fewer, but a figure of a wire whose rate is declared, or of accelerators' own collectives: both runs' own
  intervals in quadrature, because such a wire repeats itself (shaped link: MAD/median 0.001);
- fewer, and anything that shares CPUs or disks with others: not judged; two such runs differ by far more.
"""

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.reader import DocumentError, Positive, Text, read
from smoke_training.statistics.estimators import Z_REPORTED, student_quantile

SCHEMA = "trainstack.smoke-baseline/1"
LIMIT = 0.97
# One-sided 1e-4 per figure: with ten figures a night, one false alarm in about three years.
Z_REGRESSION = 3.719
Z_POWER = 2.326  # 99 %
MIN_RUNS = 8  # below it, Student's t is too wide for any decision
MAX_RUNS = 20

# Compared figures, and whether more is better. Counts and yes/no figures have no ratio; a figure
# without an interval is not compared either.
HIGHER, LOWER = "higher", "lower"
BETTER: Mapping[str, str] = {
    **{f"collective.{name}": HIGHER for name in COLLECTIVES},
    **dict.fromkeys(("fabric.links", "fabric.rails", "storage.write", "storage.read"), HIGHER),
    **dict.fromkeys(("training.scaling_efficiency", "training.overlap", "training.mfu"), HIGHER),
    **dict.fromkeys(("training.sharded", "loader.utilisation", "gpu.compute"), HIGHER),
    "checkpoint.commit": LOWER,
}
_WIRE = ("collective.", "fabric.")
_UNKNOWN_SPREAD = "the run-to-run variation of this figure is not known yet"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A positive figure with its 95 % interval; `n` is the number of samples behind it."""

    value: float
    ci: tuple[float, ...]
    n: int
    unit: str


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Setting of a figure. Two runs are compared only if all fields are equal.

    `sizes` are the payload sizes of the sweeps in bytes; `declared_gbit_s` is the declared rate of a node's
    training network in Gb/s; `plugins` are NCCL's network plugins with versions, `environment` its settings
    as one text, `mnnvl` NVLink between nodes. None is "not in use" and equals only None.
    """

    instance_type: str
    nodes: int
    gpus_per_node: int
    ranks: int
    cpus_per_node: int
    image: str
    backend: str
    nccl: str | None
    driver: str | None
    sizes: tuple[int, ...]
    declared_gbit_s: float | None
    fabric: str | None = None
    gpu: str | None = None
    kernel: str | None = None
    plugins: str | None = None
    mnnvl: bool | None = None
    environment: str | None = None

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, for searches."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A user's decision that a run is the reference of figures (by check id) for which none is published."""

    by: Text
    at: Text
    because: Text
    run_id: Text
    figures: Mapping[str, Positive]

    @property
    def text(self) -> str:
        """Description of the decision: run, user, time, reason."""
        return f"run {self.run_id}, accepted by {self.by} on {self.at}: {self.because}"


@dataclass(frozen=True, kw_only=True)
class RunBaseline:
    """Figures of an accepted run by check id, and the same figures of earlier accepted runs.

    `history` has one value per accepted run, the newest (this one) first. `acceptance` is that of the run
    that they were all held against, where a user accepted one.
    """

    stack: str
    run_id: str
    recorded: str
    fingerprint: Fingerprint
    figures: Mapping[str, Figure]
    history: Mapping[str, list[Positive]] = field(default_factory=dict)
    acceptance: Acceptance | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure against its baseline. `ratio` and its 95 % interval `ci` are of performance.

    `regressed` is None with a `reason` if undecided. `significant`: the 95 % interval
    excludes 1. `detectable` is the smallest relative loss that this comparison finds with power 0.99.
    """

    id: str
    unit: str
    better: str
    old: Figure
    new: Figure
    runs: int
    ratio: float
    ci: tuple[float, float]
    significant: bool
    regressed: bool | None
    detectable: float | None
    reason: str | None = None


def parse(document: object) -> RunBaseline:
    """Read a baseline document; DocumentError lists every problem."""
    if not isinstance(document, Mapping):
        raise DocumentError([f"baseline: got a {type(document).__name__}; must be an object"])
    if document.get("schema") != SCHEMA:
        raise DocumentError([f'baseline.schema: got {document.get("schema")!r}; must be "{SCHEMA}"'])
    problems: list[str] = []
    values = {key: value for key, value in document.items() if key != "schema"}
    found = read(RunBaseline, values, problems, "baseline.")
    if found is not None:
        problems += [text for name, figure in found.figures.items() for text in _faults(name, figure)]
        problems += [] if found.figures else ["baseline.figures: empty; nothing can be compared with it"]
    if found is None or problems:
        raise DocumentError(problems)
    return found


def render(baseline: RunBaseline) -> dict[str, Any]:
    """Return the baseline as a document that `parse` reads back to an equal baseline."""
    return {"schema": SCHEMA, **json.loads(json.dumps(asdict(baseline)))}


def usable(name: str, value: object, ci: object, n: int, unit: str) -> Figure | None:
    """Return a measured figure in comparable form, None if it is not comparable or has no interval."""
    if name not in BETTER or not isinstance(value, int | float) or not isinstance(ci, list | tuple):
        return None
    bounds = tuple(float(bound) for bound in ci)
    figure = Figure(value=float(value), ci=bounds, n=n, unit=unit)
    return None if _faults(name, figure) else figure


def differences(own: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """Return why a baseline with fingerprint `other` does not apply to `own`; empty if it does."""
    mine, theirs = asdict(own), asdict(other)
    return tuple(
        f"{name}: this run has {_shown(mine[name])}, the baseline {_shown(theirs[name])}"
        for name in mine
        if mine[name] != theirs[name]
    )


def compare(baseline: RunBaseline, figures: Mapping[str, Figure]) -> tuple[Comparison, ...]:
    """Compare every figure that both have in the same unit, in the order of `figures`."""
    return tuple(
        compare_one(name, baseline.figures[name], new, baseline.history.get(name, ()), baseline.fingerprint)
        for name, new in figures.items()
        if name in baseline.figures and baseline.figures[name].unit == new.unit
    )


def compare_one(
    name: str, old: Figure, new: Figure, history: Sequence[float], fingerprint: Fingerprint
) -> Comparison:
    """One figure; `history` are the values of accepted runs, newest first, at most `MAX_RUNS` are used."""
    values = list(history[:MAX_RUNS])
    if len(values) >= MIN_RUNS:
        shift, error, freedom = _against_history(values, new)
    else:
        shift = math.log(new.value / old.value)
        error, freedom = math.hypot(_log_error(old), _log_error(new)), None
    shift *= 1 if BETTER[name] == HIGHER else -1
    quantiles = (z if freedom is None else student_quantile(z, freedom) for z in (Z_REPORTED, Z_REGRESSION))
    reported, deciding = (quantile * error for quantile in quantiles)
    repeats = fingerprint.backend == "nccl" or fingerprint.declared_gbit_s is not None
    enough = freedom is not None or (repeats and name.startswith(_WIRE))
    needed = (deciding + Z_POWER * error) if enough else None
    return Comparison(
        id=name,
        unit=new.unit,
        better=BETTER[name],
        old=old,
        new=new,
        runs=max(1, len(values)),
        ratio=math.exp(shift),
        ci=(math.exp(shift - reported), math.exp(shift + reported)),
        significant=abs(shift) > reported,
        regressed=shift + deciding < math.log(LIMIT) if enough else None,
        detectable=None if needed is None else 1 - LIMIT * math.exp(-needed),
        reason=None if enough else f"{len(values) or 1} of {MIN_RUNS} accepted runs: {_UNKNOWN_SPREAD}",
    )


def _against_history(values: Sequence[float], new: Figure) -> tuple[float, float, int]:
    """Return the log distance from the runs' mean, its standard error as a prediction, degrees of freedom."""
    logs = [math.log(value) for value in values]
    spread = max(statistics.stdev(logs), _log_error(new))
    return (
        math.log(new.value) - math.fsum(logs) / len(logs),
        spread * math.sqrt(1 + 1 / len(logs)),
        len(logs) - 1,
    )


def _log_error(figure: Figure) -> float:
    """Return the standard error of the logarithm, from the wider side of the 95 % interval."""
    low, high = figure.ci
    return max(math.log(figure.value / low), math.log(high / figure.value)) / Z_REPORTED


def _faults(name: str, figure: Figure) -> list[str]:
    path = f"baseline.figures.{name}"
    if not _positive(figure.value):
        return [f"{path}.value: got {figure.value!r}; must be a positive number"]
    if len(figure.ci) != 2 or not all(_positive(bound) for bound in figure.ci):
        return [f"{path}.ci: got {list(figure.ci)!r}; must be two positive numbers"]
    if not figure.ci[0] <= figure.value <= figure.ci[1]:
        return [f"{path}.ci: got {list(figure.ci)!r}; must hold the value {figure.value!r}"]
    return []


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} sizes up to {max(value)} bytes" if value else "no sizes"
    return "none" if value is None else str(value)
