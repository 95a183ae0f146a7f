"""Hyperparameter tuning jobs: records, store, and the thread that runs one.

A tuning job starts training jobs, as many at a time as it may, and takes the last value that its metric's
regular expression finds in the log of each. Settings are drawn at random, also for the strategy Bayesian: the
choices of the service are not documented. Source: botocore 1.44.5 sagemaker/2017-07-24
(CreateHyperParameterTuningJob: the name is "the prefix for the names of all training jobs"; Describe...;
Stop...: "and all running training jobs that the tuning job launched"); _tuning_objective_metric:
aws/sagemaker-tensorflow-training-toolkit pull request 179; the failure after five trials:
aws/amazon-sagemaker-examples issues 2436 and 2437. Not emulated: early stopping, quotas, missing machines.
"""

import logging
import math
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rehearsal.core.state import State
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord, TrainingJobStore
from rehearsal.jobs.aws.sagemaker.runner import GROUP
from rehearsal.jobs.aws.sagemaker.toolkit import METRIC
from rehearsal.jobs.log_store import LogStore, events
from rehearsal.jobs.rows import row

_SPACE, _TICK_S, _MOST_FAILED = "tuning-job", 0.2, 5
_LOG = logging.getLogger("rehearsal")
_OVER = frozenset({"Completed", "Failed", "Stopped"})
_FAILED = (
    "No training job succeeded after {count} attempts. Please take a look at the training job failures to "
    "get more details."
)
_INTERNAL = "InternalServerError: We encountered an internal error. Please try again."


@dataclass(frozen=True)
class TuningJobRecord:
    """One tuning job; times are seconds since 1970, `request` is that of its creation without tags."""

    account: str
    region: str
    name: str
    request: Mapping[str, Any]
    tags: Mapping[str, str]
    created: float
    modified: float
    status: str = "InProgress"
    ended: float | None = None
    failure: str = ""
    trials: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Hyperparameters of each trial, by the name of its training job."""

    @property
    def arn(self) -> str:
        """ARN of the tuning job."""
        return f"arn:aws:sagemaker:{self.region}:{self.account}:hyper-parameter-tuning-job/{self.name}"

    @property
    def over(self) -> bool:
        """Return whether the tuning job has ended."""
        return self.status in _OVER

    @property
    def config(self) -> Mapping[str, Any]:
        """HyperParameterTuningJobConfig of the request."""
        found: Mapping[str, Any] = self.request["HyperParameterTuningJobConfig"]
        return found

    @property
    def definition(self) -> Mapping[str, Any]:
        """TrainingJobDefinition of the request."""
        found: Mapping[str, Any] = self.request["TrainingJobDefinition"]
        return found

    @property
    def most(self) -> int:
        """Maximum number of trials."""
        return int(self.config["ResourceLimits"]["MaxNumberOfTrainingJobs"])


@dataclass(frozen=True)
class TuningJobs:
    """Tuning jobs in the state; `begin` and `end` start and stop a training job."""

    state: State
    logs: LogStore
    begin: Callable[[TrainingJobRecord], None]
    end: Callable[[TrainingJobRecord], None]

    def get(self, account: str, region: str, name: str) -> TuningJobRecord | None:
        """A tuning job by name."""
        kept = self.state.document(_SPACE, f"{account}/{region}/{name}")
        return TuningJobRecord(**kept) if kept else None

    def all(self, region: str | None = None) -> Iterator[TuningJobRecord]:
        """All tuning jobs, or those of one region."""
        for key, kept in self.state.documents(_SPACE).items():
            if region is None or key.split("/")[1] == region:
                yield TuningJobRecord(**kept)

    def start(self, search: TuningJobRecord) -> None:
        """Start a new tuning job."""
        self._put(search)
        threading.Thread(target=self._run, args=(search,), name=search.arn, daemon=True).start()

    def stop(self, search: TuningJobRecord) -> None:
        """Stop a tuning job and its trials."""
        self._put(replace(self._now(search), status="Stopping", modified=time.time()))

    def fail_what_ran(self) -> None:
        """Fail the tuning jobs that ran when the previous daemon ended."""
        for search in list(self.all()):
            if not search.over:
                self._put(replace(search, status="Failed", failure=_INTERNAL, ended=time.time()))

    def live(self) -> list[dict[str, Any]]:
        """A row for each running tuning job, in the form of a pod's."""
        return [row("TuningJob", one.region, one.name, one.status) for one in self.all() if not one.over]

    def jobs(self, search: TuningJobRecord) -> list[TrainingJobRecord]:
        """The training jobs of a tuning job, in the order of their start."""
        store = TrainingJobStore(self.state)
        found = (store.get(search.account, search.region, name) for name in search.trials)
        return [job for job in found if job is not None]

    def figure(self, search: TuningJobRecord, job: TrainingJobRecord) -> float | None:
        """Last value of the metric in the log of a trial, if any."""
        metric = search.config["HyperParameterTuningJobObjective"]["MetricName"]
        rows = search.definition["AlgorithmSpecification"]["MetricDefinitions"]
        pattern = re.compile(next(one["Regex"] for one in rows if one["Name"] == metric))
        found = None
        try:
            streams = self.logs.streams(search.account, search.region, GROUP)
        except KeyError:
            return None
        for name, path in streams.items():
            if name.startswith(f"{job.name}/"):
                for event in events(path):
                    for text in pattern.findall(event.message):
                        found = _value(text, found)
        return found

    def best(self, search: TuningJobRecord) -> tuple[TrainingJobRecord, float] | None:
        """The best completed trial and its metric."""
        done = [(job, self.figure(search, job)) for job in self.jobs(search) if job.status == "Completed"]
        known = [(job, value) for job, value in done if value is not None]
        lower = search.config["HyperParameterTuningJobObjective"]["Type"] == "Minimize"
        return min(known, key=lambda one: one[1] if lower else -one[1], default=None)

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self, search: TuningJobRecord) -> None:
        try:
            while not self._step(self._now(search)):
                time.sleep(_TICK_S)
        except Exception:
            _LOG.exception("tuning job %s", search.name)
            self._end(self._now(search), "Failed", _INTERNAL)

    def _step(self, search: TuningJobRecord) -> bool:
        """Process the trials once; returns whether the tuning job is over."""
        jobs = self.jobs(search)
        running = [job for job in jobs if not job.over]
        failed = sum(job.status == "Failed" for job in jobs)
        gone = failed >= min(_MOST_FAILED, search.most) and not any(job.status == "Completed" for job in jobs)
        if search.status == "Stopping" or gone:
            for job in running:
                if job.status != "Stopping":
                    self.end(job)
            if not running:
                failure = _FAILED.format(count=failed) if gone else ""
                self._end(search, "Failed" if gone else "Stopped", failure)
            return not running
        if len(jobs) == search.most and not running:
            self._end(search, "Completed", "")
            return True
        parallel = int(search.config["ResourceLimits"]["MaxParallelTrainingJobs"])
        for number in range(len(jobs), min(search.most, len(jobs) + parallel - len(running))):
            self._trial(search, number)
        return False

    def _trial(self, search: TuningJobRecord, number: int) -> None:
        name = f"{search.name}-{number + 1:03d}-{secrets.token_hex(4)}"
        given = drawn(search.config["ParameterRanges"], random.Random(f"{search.arn}|{number}"))  # noqa: S311
        now = self._now(search)
        self._put(replace(now, trials={**now.trials, name: given}, modified=time.time()))
        definition = {
            key: value for key, value in search.definition.items() if key != "StaticHyperParameters"
        }
        metric = search.config["HyperParameterTuningJobObjective"]["MetricName"]
        given = {**(search.definition.get("StaticHyperParameters") or {}), **given, METRIC: metric}
        request = {**definition, "TrainingJobName": name, "HyperParameters": given}
        began = time.time()
        self.begin(
            TrainingJobRecord(
                search.account, search.region, name, request, search.tags, began, began, tuning=search.arn
            )
        )

    def _end(self, search: TuningJobRecord, status: str, failure: str) -> None:
        now = time.time()
        self._put(replace(self._now(search), status=status, failure=failure, ended=now, modified=now))

    def _now(self, search: TuningJobRecord) -> TuningJobRecord:
        found = self.get(search.account, search.region, search.name)
        assert found is not None
        return found

    def _put(self, search: TuningJobRecord) -> None:
        self.state.put_document(_SPACE, f"{search.account}/{search.region}/{search.name}", asdict(search))


def drawn(ranges: Mapping[str, Any], dice: random.Random) -> dict[str, str]:
    """Draw one value of each parameter; `Auto` scaling is linear."""
    found: dict[str, str] = {}
    for one in ranges.get("CategoricalParameterRanges") or ():
        found[one["Name"]] = dice.choice(one["Values"])
    for one in ranges.get("IntegerParameterRanges") or ():
        found[one["Name"]] = str(round(_between(one, dice)))
    for one in ranges.get("ContinuousParameterRanges") or ():
        found[one["Name"]] = repr(_between(one, dice))
    return found


def _between(one: Mapping[str, str], dice: random.Random) -> float:
    low, high = float(one["MinValue"]), float(one["MaxValue"])
    match one.get("ScalingType", "Auto"):
        case "Logarithmic":
            return min(high, max(low, math.exp(dice.uniform(math.log(low), math.log(high)))))
        case "ReverseLogarithmic":
            return min(high, max(low, 1 - math.exp(dice.uniform(math.log(1 - high), math.log(1 - low)))))
        case _:
            return dice.uniform(low, high)


def _value(text: str, before: float | None) -> float | None:
    try:
        return float(text)
    except ValueError:
        return before
