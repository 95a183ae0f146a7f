"""The baseline of a stack, found in MLflow by its tags: the accepted runs of the same fingerprint."""

import json
from collections.abc import Mapping

from smoke_training.evidence.baseline import Lookup
from smoke_training.record import accepted, fields, server
from smoke_training.record.mlflow import Run, TrackingError
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import Baseline, BaselineError, Fingerprint

PATIENCE_S = 5.0  # a slow tracking server costs this much of a run and no more


def find(stack: str, own: Fingerprint, environment: Mapping[str, str], seconds: float) -> Lookup:
    """The `baseline` evidence: a document with its source, or None with the reason. Never raises."""
    if not environment.get("MLFLOW_TRACKING_URI"):
        return _none(server.NOT_SET)
    bound = min(PATIENCE_S, seconds)
    try:
        return server.within(bound, lambda: _find(stack, own, environment, bound))
    except TrackingError as error:
        return _none(f"tracking unreachable: {error}"[:500])
    except (ValueError, TypeError, KeyError) as error:
        return _none(f"the recorded runs cannot be read: {type(error).__name__}: {error}"[:500])


def _find(stack: str, own: Fingerprint, environment: Mapping[str, str], seconds: float) -> Lookup:
    tracking = server.connect(environment, seconds)
    experiment = tracking.existing_experiment(fields.EXPERIMENT)
    if experiment is None:
        return _none("no run is recorded yet")
    wanted = {fields.STACK: stack, fields.ACCEPTED: "true"}
    runs = tracking.search(experiment, {**wanted, fields.FINGERPRINT: own.digest()}, baselines.MAX_RUNS)
    usable = [found for found in map(_baseline, _since_accepted(runs)) if found and found.fingerprint == own]
    if usable:
        document = baselines.render(accepted.merged(usable))
        source = f"found in MLflow, the last of {len(usable)} accepted runs alike"
        return Lookup(document=document, source=source, reason=None)
    others = [found for found in map(_baseline, tracking.search(experiment, wanted, 1)) if found]
    if not others:
        return _none(f"no accepted run of stack {stack} is recorded")
    unlike = "; ".join(baselines.differences(own, others[0].fingerprint))
    return _none(f"no accepted run of stack {stack} is like this one; its last one differs: {unlike}")


def _since_accepted(newest_first: list[Run]) -> list[Run]:
    """Runs up to the last one that was accepted although it had regressed: there a new normal began."""
    for index, run in enumerate(newest_first):
        if run.tags.get(fields.REGRESSION) == "true":
            return newest_first[: index + 1]
    return newest_first


def _baseline(run: Run) -> Baseline | None:
    """What a run left; None where it left nothing readable (another version, a tag changed by hand)."""
    try:
        return baselines.parse(json.loads(run.tags.get(fields.BASELINE, "")))
    except (ValueError, BaselineError):
        return None


def _none(reason: str) -> Lookup:
    return Lookup(document=None, source="MLflow", reason=reason)
