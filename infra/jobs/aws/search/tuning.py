"""A hyperparameter search by the service: its declaration in a folder, and its request (pure).

Source of limits: botocore 1.44.5 sagemaker/2017-07-24 CreateHyperParameterTuningJob; developer guide,
"Resource limits for automatic model tuning" (30 ranges, 750 trials).
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from infra.jobs.limits import MOST_OF_A_SEARCH
from infra.jobs.service import TuningSpec
from infra.launchers.aws import trial
from infra.launchers.pods import Body

# `<stack>-<person>-<second in hex>`, unlike a trial: `<search>-<number>-<8 hex digits>`.
_SEARCH, _TRIAL = re.compile(r".+-[0-9a-f]{8}"), re.compile(r".+-[0-9]{3}-[0-9a-f]{8}")
_MOST_RANGES, _MOST_VALUES, _MOST_TRIALS = 30, 30, 750
_STRATEGIES = {"bayesian": "Bayesian", "random": "Random"}
_GOALS = {"minimize": "Minimize", "maximize": "Maximize"}
_SCALES = {"auto": "Auto", "linear": "Linear", "logarithmic": "Logarithmic"}
_KEYS = {"trials", "parallel", "strategy", "objective", "parameters"}
_EXAMPLE = "docs/how-to/jobs.md shows one."
# Fields of a training job that its trials share.
_CARRIED = (
    *("RoleArn", "InputDataConfig", "OutputDataConfig", "ResourceConfig", "StoppingCondition"),
    *("EnableManagedSpotTraining", "CheckpointConfig", "VpcConfig"),
)


def is_search(name: str) -> bool:
    """Return whether a run of this name is a search, by the form of its name."""
    return len(name) <= MOST_OF_A_SEARCH and bool(_SEARCH.fullmatch(name)) and not _TRIAL.fullmatch(name)


def read(folder: Path, name: str) -> TuningSpec:
    """The search that a TOML file of the folder declares. Raises UserError with all problems."""
    path = folder / name
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        rule = f"is not a file of {folder}"
        raise UserError(
            [Problem("--tune", name, rule, f"Write this file. {_EXAMPLE}", code="search-file-missing")]
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            [Problem(str(path), None, f"is not TOML: {error}", _EXAMPLE, code="search-file-not-toml")]
        ) from error
    if problems := [
        Problem(f"{path}: {at}", value, rule, fix, code=code) for at, value, rule, fix, code in _wrong(found)
    ]:
        raise UserError(problems)
    objective = found["objective"]
    return TuningSpec(
        trials=found["trials"],
        parallel=found.get("parallel", 1),
        strategy=_STRATEGIES[found.get("strategy", "bayesian")],
        metric=objective["metric"],
        regex=objective["regex"],
        goal=_GOALS[objective["goal"]],
        ranges=found["parameters"],
    )


def request(training: Body, tuning: TuningSpec) -> Body:
    """The request of CreateHyperParameterTuningJob whose trials equal this CreateTrainingJob."""
    algorithm = training["AlgorithmSpecification"]
    (code,) = [one["ChannelName"] for one in training["InputDataConfig"] if one["ChannelName"] == "code"]
    definition = {
        **{key: training[key] for key in _CARRIED if key in training},
        "AlgorithmSpecification": {
            "TrainingImage": algorithm["TrainingImage"],
            "TrainingInputMode": algorithm["TrainingInputMode"],
            "MetricDefinitions": [{"Name": tuning.metric, "Regex": tuning.regex}],
        },
        "StaticHyperParameters": {
            "sagemaker_program": trial.NAME,
            "sagemaker_submit_directory": f"/opt/ml/input/data/{code}",
        },
        "Environment": {
            **training["Environment"],
            trial.COMMAND: json.dumps(algorithm["ContainerArguments"]),
        },
    }
    config = {
        "Strategy": tuning.strategy,
        "HyperParameterTuningJobObjective": {"Type": tuning.goal, "MetricName": tuning.metric},
        "ResourceLimits": {
            "MaxNumberOfTrainingJobs": tuning.trials,
            "MaxParallelTrainingJobs": tuning.parallel,
        },
        "ParameterRanges": _ranges(tuning.ranges),
        "TrainingJobEarlyStoppingType": "Off",
    }
    return {
        "HyperParameterTuningJobName": training["TrainingJobName"],
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": definition,
        "Tags": training["Tags"],
    }


def _ranges(ranges: Mapping[str, Mapping[str, Any]]) -> Body:
    found: dict[str, list[Body]] = {}
    for name, one in ranges.items():
        if "values" in one:
            values = [str(value) for value in one["values"]]
            found.setdefault("CategoricalParameterRanges", []).append({"Name": name, "Values": values})
            continue
        whole = isinstance(one["from"], int) and isinstance(one["to"], int)
        kind = "IntegerParameterRanges" if whole else "ContinuousParameterRanges"
        row = {
            "Name": name,
            "MinValue": str(one["from"]),
            "MaxValue": str(one["to"]),
            "ScalingType": _SCALES[one.get("scale", "auto")],
        }
        found.setdefault(kind, []).append(row)
    return found


Fault = tuple[str, object, str, str, str]
"""Path, value, rule, fix and code."""


def _wrong(found: Mapping[str, Any]) -> Iterator[Fault]:
    for key in sorted(set(found) - _KEYS):
        fix = f"Known are {', '.join(sorted(_KEYS))}."
        yield key, found[key], "unknown key of a search", fix, "unknown-search-key"
    trials, parallel = found.get("trials"), found.get("parallel", 1)
    if not _whole(trials, 1, _MOST_TRIALS):
        rule, fix = "must be the maximum number of trials", f"Write 1 to {_MOST_TRIALS}."
        yield "trials", trials, rule, fix, "trials-not-accepted"
    elif not _whole(parallel, 1, int(trials or 1)):
        rule, fix = "must be the number of concurrent trials", f"Write 1 to {trials}."
        yield "parallel", parallel, rule, fix, "parallel-not-accepted"
    strategy = found.get("strategy", "bayesian")
    if strategy not in _STRATEGIES:
        fix = f"Write {' or '.join(_STRATEGIES)}."
        yield "strategy", strategy, "unknown strategy", fix, "unknown-strategy"
    yield from _wrong_objective(found.get("objective"))
    ranges = found.get("parameters")
    if not isinstance(ranges, dict) or not 1 <= len(ranges) <= _MOST_RANGES:
        fix = f"Write 1 to {_MOST_RANGES} ranges. {_EXAMPLE}"
        yield "parameters", None, "must be the searched ranges", fix, "parameters-missing"
        return
    for name, one in ranges.items():
        yield from _wrong_range(name, one)


def _wrong_objective(found: Any) -> Iterator[Fault]:
    known = found if isinstance(found, dict) else {}
    for key in ("metric", "regex", "goal"):
        if not isinstance(known.get(key), str) or not known[key]:
            yield f"objective.{key}", known.get(key), "is missing", _EXAMPLE, "objective-key-missing"
    if isinstance(known.get("goal"), str) and known["goal"] not in _GOALS:
        yield "objective.goal", known["goal"], "unknown goal", f"Write {' or '.join(_GOALS)}.", "unknown-goal"
    if isinstance(regex := known.get("regex"), str) and regex:
        at = "objective.regex"
        try:
            groups = re.compile(regex).groups
        except re.error as error:
            yield at, regex, f"is not a regular expression: {error}", _EXAMPLE, "invalid-regex"
        else:
            if groups != 1 or len(regex) > 500:
                fix = "Put only the number in parentheses; at most 500 characters."
                yield at, regex, "must have the metric as its only group", fix, "regex-needs-one-group"


def _wrong_range(name: str, one: Any) -> Iterator[Fault]:
    at = f"parameters.{name}"
    # The toolkit passes `-x` for a name of one letter, and reserves names with its prefix.
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]+", name) or name.startswith("sagemaker_"):
        fix = "Use two or more letters, digits, - and _."
        yield at, name, "is not an option name", fix, "invalid-parameter-name"
    if not isinstance(one, dict):
        fix = "Write {from = 1e-4, to = 1e-2} or {values = [4, 8]}."
        yield at, one, "is not a range", fix, "invalid-parameter-range"
    elif "values" in one:
        values = one["values"]
        if set(one) != {"values"} or not isinstance(values, list) or not 1 <= len(values) <= _MOST_VALUES:
            rule = f"must have 1 to {_MOST_VALUES} values, and no other key"
            yield at, None, rule, "Write {values = [4, 8]}.", "invalid-parameter-values"
    elif not all(_number(one.get(end)) for end in ("from", "to")) or set(one) - {"from", "to", "scale"}:
        rule, fix = "must have from, to, and optionally scale", "Write {from = 1e-4, to = 1e-2}."
        yield at, None, rule, fix, "invalid-parameter-range"
    elif not one["from"] < one["to"]:
        rule, fix = f"is not below {one['to']}", "Write the smaller end as from."
        yield at, one["from"], rule, fix, "range-not-ascending"
    elif one.get("scale", "auto") not in _SCALES:
        yield f"{at}.scale", one["scale"], "unknown scale", f"Write {', '.join(_SCALES)}.", "unknown-scale"
    elif one.get("scale") == "logarithmic" and one["from"] <= 0:
        rule, fix = "a logarithmic scale needs values above 0", "Write a number above 0."
        yield f"{at}.from", one["from"], rule, fix, "logarithm-needs-positive"


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
