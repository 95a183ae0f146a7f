"""Format numbers and the parts of a result document as text (pure)."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any


def escaped(text: object) -> str:
    """Escape a text for use between tags and inside quoted attributes."""
    return html.escape(str(text), quote=True)


def number(value: object, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, thousands apart; an em dash where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "—"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "not a number"
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    if isinstance(value, float) and not -4 <= magnitude < 9:
        return f"{value:.{digits - 1}e}"
    decimals = 0 if isinstance(value, int) else max(0, digits - 1 - magnitude)
    text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    return text.rstrip("0").rstrip(".") if decimals else text


def with_unit(value: object, unit: str | None) -> str:
    """Format a number with its unit, if it has one."""
    shown = number(value)
    return shown if unit is None or shown == "—" else f"{shown} {unit}"


def size(count: float) -> str:
    """Format bytes in binary units: sizes of messages are powers of two."""
    return _scaled(count, {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1})


def seconds(value: float) -> str:
    """Format a duration in the most readable unit."""
    return _scaled(value, {"s": 1.0, "ms": 1e-3, "µs": 1e-6}) if value else "0 s"


def _scaled(value: float, units: Mapping[str, float]) -> str:
    """Format a value in the first of the units, largest first, that it fills; else in the last."""
    unit = next((unit for unit, factor in units.items() if abs(value) >= factor), list(units)[-1])
    return f"{number(value / units[unit], 3)} {unit}"


def interval(ci: object) -> str:
    """Format an interval as `low .. high`, an em dash without one."""
    if not isinstance(ci, list | tuple) or len(ci) != 2:
        return "—"
    return f"{number(ci[0])} .. {number(ci[1])}"


def measured(check: Mapping[str, Any]) -> list[str]:
    """Return the parts of a measured figure: value, interval, estimator; empty without one."""
    found = check["measured"]
    if found is None:
        return []
    if found["value"] is None:
        return [f"unknown: {found['reason']}"]
    shown = [with_unit(found["value"], found["unit"])]
    shown += [f"95 % interval {interval(found['ci'])}"] if found["ci"] else []
    return [*shown, f"{found['estimator']}, n = {number(found['n'])}"]


def expected(check: Mapping[str, Any]) -> list[str]:
    """Return the parts of a check's expectation: value, limit, indifference zone, source."""
    found, shown = check["expected"], list[str]()
    if found is not None and found["value"] is not None:
        shown = [number(found["value"])]
        shown += [f"limit {number(found['floor'])}"] if found["floor"] is not None else []
    elif found is not None:
        shown = [f"unknown: {found['reason']}"]
    shown += [f"indifference zone {interval(check['zone'])}"] if check["zone"] else []
    return shown + ([f"{found['kind']}: {found['source']}"] if found and found["value"] is not None else [])


def reference(item: Mapping[str, Any]) -> list[str]:
    """Return the parts of one of the four references: value, interval, and last the source."""
    if item["value"] is None:
        return [f"unknown: {item['reason']}"]
    shown = [with_unit(item["value"], item["unit"])]
    shown += [f"interval {interval(item['ci'])}"] if item["ci"] else []
    return [*shown, str(item["source"])]


def joined(parts: Sequence[str]) -> str:
    """Join parts to one line, the last in brackets."""
    return f"{', '.join(parts[:-1])} ({parts[-1]})" if len(parts) > 1 else "".join(parts)
