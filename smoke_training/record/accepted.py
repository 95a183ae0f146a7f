"""Select runs as baselines, and build the baselines (pure, from a result document)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from smoke_training.reader import DocumentError, read
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import Acceptance, Figure, RunBaseline

Result = Mapping[str, Any]


def unusable(result: Result) -> str | None:
    """Return why this run's figures can never become a baseline; None when they can.

    A baseline from a failed run would accept its fault.
    """
    comparable = result["comparable"]
    if result["verdict"] != "PASS":
        return f"the run is {result['verdict']}, only a PASS may be a baseline"
    if result["partial"]:
        return "the run left out phases"
    if comparable["fingerprint"] is None:
        return str(comparable["reason"])
    return None if comparable["figures"] else "no figure of the run can be compared"


def refusal(result: Result) -> str | None:
    """Return why this run does not automatically become the next baseline; None when it does.

    A regressed run does not, or the next one would be compared with the decline. Users may
    still accept it, as the new normal.
    """
    if result["regression"]:
        return f"the run has regressed: {', '.join(result['regressed'])}"
    return unusable(result)


def offered(result: Result) -> RunBaseline | None:
    """Return the baseline of this run's figures, None where they are `unusable`."""
    return baseline_of(result) if unusable(result) is None else None


def baseline_of(result: Result) -> RunBaseline:
    """Return the comparable figures of any run and their fingerprint; DocumentError without one."""
    comparable, problems = result["comparable"], list[str]()
    if comparable["fingerprint"] is None:
        raise DocumentError([f"run {result['run_id']} has no fingerprint: {comparable['reason']}"])
    values = {
        "stack": result["plan"]["stack"],
        "run_id": result["run_id"],
        "recorded": result["started"],
        "fingerprint": comparable["fingerprint"],
        "figures": comparable["figures"],
        "acceptance": comparable.get("acceptance"),
    }
    found = read(RunBaseline, values, problems, "comparable.")
    if found is None:
        raise DocumentError(problems)
    return found


def without_reference(result: Result) -> dict[str, Figure]:
    """Return the figures of the required checks that are undecided because no reference is known."""
    found = {}
    for check in result["checks"]:
        measured, wanted = check["measured"], check["expected"]
        undecided = check["required"] and check["status"] == "INCONCLUSIVE" and measured and wanted
        if undecided and wanted["kind"] == "unknown":
            values = (measured[key] for key in ("value", "ci", "n", "unit"))
            if (figure := baselines.usable(check["id"], *values)) is not None:
                found[check["id"]] = figure
    return found


def accept(result: Result, *, by: str, at: str, because: str) -> RunBaseline:
    """Return a run as the reference of later ones; DocumentError where it must not become one.

    It must have passed, but for figures that nothing could be held against: these it is the reference of.
    """
    new = without_reference(result)
    required = [check for check in result["checks"] if check["required"] and check["id"] not in new]
    open_ = [check["id"] for check in required if check["status"] not in ("PASS", "SKIPPED")]
    figures = {**result["comparable"]["figures"], **new}
    whole = {**result, "verdict": "PASS", "comparable": {**result["comparable"], "figures": figures}}
    if why := f"not passed: {', '.join(open_)}" if open_ else unusable(whole):
        raise DocumentError([f"run {result['run_id']} cannot be accepted: {why}"])
    known = baseline_of(result)
    values = {name: figure.value for name, figure in new.items()}
    if known.acceptance is not None:
        values = {**known.acceptance.figures, **values}
    decided = Acceptance(by=by, at=at, because=because, run_id=result["run_id"], figures=values)
    return dataclasses.replace(known, figures={**known.figures, **new}, acceptance=decided)


def merged(newest_first: list[RunBaseline]) -> RunBaseline:
    """Return the newest baseline with the values of all of them as its history; all have its fingerprint."""
    newest = newest_first[0]
    history = {
        name: [
            other.figures[name].value
            for other in newest_first
            if name in other.figures and other.figures[name].unit == figure.unit
        ][: baselines.MAX_RUNS]
        for name, figure in newest.figures.items()
    }
    return dataclasses.replace(newest, history=history)
