"""The four things a figure is held against: bound, declared, published, own earlier runs (pure).

All four are in the result whether or not they judged, so that a reader sees which of them exist.
"""

from collections.abc import Mapping, Sequence

from smoke_training.judges.run import baseline as own
from smoke_training.model import Check, Expected, Measured
from smoke_training.statistics.baseline import BETTER

KINDS = ("bound", "declared", "published", "baseline")
Reference = dict[str, object]

# What a judge's expectation is called here. `exact` is not a rate to compare with, and a `derived` one is a
# share of a bound: it stands with the check, the bound itself stands here.
_JUDGED = ("published", "declared")
_ABSENT = {
    "bound": "no theoretical bound is computed for this figure",
    "declared": "the run plan declares none",
    "published": "no published figure for this machine type, node count and size",
    "baseline": "no accepted run to compare with",
}


def of(check: Check, checks: Sequence[Check]) -> list[Reference]:
    """The four references of a check that has a comparable figure; empty for all other checks."""
    if check.id not in BETTER:
        return []
    unit = check.measured.unit if check.measured else None
    found = {kind: _absent(kind, unit, _ABSENT[kind]) for kind in KINDS}
    if check.expected is not None:
        found |= _expected(check.expected, unit)
    if check.measured is not None:
        found["bound"] = _bound(check.measured, found["bound"])
    found["baseline"] = _earlier(check, checks, unit)
    return [found[kind] for kind in KINDS]


def _expected(expected: Expected, unit: str | None) -> dict[str, Reference]:
    if expected.kind in _JUDGED and expected.value is not None:
        made = {"value": expected.value, "unit": unit, "ci": None, "source": expected.source, "reason": None}
        return {expected.kind: {"kind": expected.kind, **made}}
    return {"published": _absent("published", unit, expected.reason)} if expected.reason else {}


def _bound(measured: Measured, absent: Reference) -> Reference:
    """The most that any algorithm can reach, of those that the judge worked out."""
    known = [item for item in _listed(measured.detail, "bounds") if item.get("busbw_gb_s") is not None]
    if not known:
        return absent
    most = max(known, key=lambda item: float(str(item["busbw_gb_s"])))
    source = f"{most['algorithm']} over {most['limit']}"
    if not most.get("complete"):
        source += "; other wires on the way are unknown"
    return {"kind": "bound", "value": most["busbw_gb_s"], "unit": measured.unit, "ci": None, "source": source,
            "reason": None}  # fmt: skip


def _earlier(check: Check, checks: Sequence[Check], unit: str | None) -> Reference:
    """What the stack's own earlier run had, from the comparison."""
    judged = next((c for c in checks if c.id == own.ID), None)
    if judged is None:
        return _absent("baseline", unit, _ABSENT["baseline"])
    if judged.measured is None:
        return _absent("baseline", unit, judged.message)
    for item in _listed(judged.measured.detail, "figures"):
        if item.get("id") == check.id:
            source = judged.expected.source if judged.expected else "not said"
            return {"kind": "baseline", "value": item["baseline"], "unit": unit, "ci": item["baseline_ci"],
                    "source": source, "reason": None}  # fmt: skip
    return _absent("baseline", unit, "the baseline does not have this figure")


def _listed(detail: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    items = detail.get(key)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []


def _absent(kind: str, unit: str | None, reason: str) -> Reference:
    return {"kind": kind, "value": None, "unit": unit, "ci": None, "source": None, "reason": reason}
