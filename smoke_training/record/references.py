"""The four references of a figure: bound, declared, published, own earlier runs (pure).

All four are in the result whether or not they judged, so that a reader sees which exist.
"""

from collections.abc import Sequence
from typing import Any, cast

from smoke_training.judges.run import baseline as own
from smoke_training.model import Check
from smoke_training.statistics.baseline import BETTER

Reference = dict[str, object]

# By kind, the reason for a missing reference.
_ABSENT = {
    "bound": "no theoretical bound is computed for this figure",
    "declared": "the run plan declares none",
    "published": "no published figure for this machine type, node count and size",
    "baseline": "no accepted run to compare with",
}


def of(check: Check, checks: Sequence[Check]) -> list[Reference]:
    """Return the four references of a check that has a comparable figure; empty for all other checks."""
    if check.id not in BETTER:
        return []
    unit = check.measured.unit if check.measured else None
    known = _judged(check) | _bound(check) | _earlier(check, checks)
    nothing = {"value": None, "ci": None, "source": None, "reason": None}
    return [
        {"kind": kind, "unit": unit, **nothing, **known.get(kind, {"reason": reason})}
        for kind, reason in _ABSENT.items()
    ]


def _judged(check: Check) -> dict[str, Reference]:
    """Return the judge's expectation as a reference.

    `exact` is not a rate to compare with, and a `derived` one is a share of a bound: it is in the check, the
    bound itself is here.
    """
    wanted = check.expected
    if wanted is not None and wanted.kind in ("published", "declared") and wanted.value is not None:
        return {wanted.kind: {"value": wanted.value, "source": wanted.source}}
    return {"published": {"reason": wanted.reason}} if wanted is not None and wanted.reason else {}


def _bound(check: Check) -> dict[str, Reference]:
    known = [item for item in _listed(check, "bounds") if item["busbw_gb_s"] is not None]
    if not known:
        return {}
    most = max(known, key=lambda item: float(item["busbw_gb_s"]))
    more = "" if most["complete"] else "; other wires on the way are unknown"
    source = f"{most['algorithm']} over {most['limit']}{more}"
    return {"bound": {"value": most["busbw_gb_s"], "source": source}}


def _earlier(check: Check, checks: Sequence[Check]) -> dict[str, Reference]:
    """Return the figure of the stack's own earlier run, from the comparison."""
    judged = next((c for c in checks if c.id == own.ID), None)
    if judged is None:
        return {}
    if judged.measured is None or judged.expected is None:
        return {"baseline": {"reason": judged.message}}
    for item in _listed(judged, "figures"):
        if item["id"] == check.id:
            found = {"value": item["baseline"], "ci": item["baseline_ci"], "source": judged.expected.source}
            return {"baseline": found}
    return {"baseline": {"reason": "the baseline does not have this figure"}}


def _listed(check: Check, key: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", check.measured.detail.get(key) or []) if check.measured else []
