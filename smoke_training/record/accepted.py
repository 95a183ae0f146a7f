"""Which runs become baselines, and what they leave for later runs (pure, from a result document)."""

from collections.abc import Mapping
from typing import Any

from smoke_training.decode import decode
from smoke_training.model import SCHEMA
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import Baseline, Figure, Fingerprint

Result = Mapping[str, Any]


class ResultError(ValueError):
    """A result document that cannot be used; the text says why."""


def unusable(result: Result) -> str | None:
    """Why the figures of this run may never become a baseline; None when they could.

    A baseline made of a broken run would bless what is broken.
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
    """Why this run is not the next baseline by itself; None when it is.

    A run that has regressed is not, or the next one would be measured against the decline. People may
    still accept it, as the new normal.
    """
    if result["regression"]:
        return f"the run has regressed: {', '.join(result['regressed'])}"
    return unusable(result)


def offered(result: Result) -> Baseline | None:
    """The baseline that this run's figures make, None where they are `unusable`."""
    if unusable(result) is not None:
        return None
    return Baseline(
        stack=result["plan"]["stack"],
        run_id=result["run_id"],
        recorded=result["started"],
        fingerprint=fingerprint(result),
        figures=figures(result),
    )


def fingerprint(result: Result) -> Fingerprint:
    """What the figures of a result hold for; ResultError when the result does not know."""
    found = result["comparable"]["fingerprint"]
    if found is None:
        raise ResultError(f"no fingerprint: {result['comparable']['reason']}")
    decoded = decode(Fingerprint, dict(found))
    assert isinstance(decoded, Fingerprint)
    return decoded


def figures(result: Result) -> dict[str, Figure]:
    """The comparable figures of a result by check id."""
    found = result["comparable"]["figures"]
    return {name: decode(Figure, dict(figure)) for name, figure in found.items()}


def merged(newest_first: list[Baseline]) -> Baseline:
    """The newest baseline with the values of all of them as its history; all have its fingerprint."""
    newest = newest_first[0]
    history = {
        name: [
            other.figures[name].value
            for other in newest_first
            if name in other.figures and other.figures[name].unit == figure.unit
        ][: baselines.MAX_RUNS]
        for name, figure in newest.figures.items()
    }
    return Baseline(
        stack=newest.stack,
        run_id=newest.run_id,
        recorded=newest.recorded,
        fingerprint=newest.fingerprint,
        figures=newest.figures,
        history=history,
    )


def checked(result: object, where: str) -> dict[str, Any]:
    """A result document of the schema this code reads; ResultError otherwise."""
    if not isinstance(result, dict):
        raise ResultError(f"{where}: got a {type(result).__name__}; a result is an object")
    if result.get("schema") != SCHEMA:
        raise ResultError(
            f'{where}: schema is {result.get("schema")!r}; must be "{SCHEMA}". '
            "Read it with the version of smoke_training that wrote it."
        )
    missing = [key for key in ("run_id", "verdict", "plan", "checks", "comparable") if key not in result]
    if missing:
        raise ResultError(f"{where}: not a complete result: {', '.join(missing)} missing")
    return result
