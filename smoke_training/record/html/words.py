"""Numbers and names as people read them (pure)."""

import html
import math


def escaped(text: object) -> str:
    """Text that is safe between tags and inside quoted attributes."""
    return html.escape(str(text), quote=True)


def number(value: object, digits: int = 4) -> str:
    """A number with `digits` significant digits, thousands apart; an em dash where there is none."""
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
    """A number with its unit; a share or factor without one stays bare."""
    shown = number(value)
    return shown if unit is None or shown == "—" else f"{shown} {unit}"


def size(count: float) -> str:
    """Bytes in binary units: sizes of messages are powers of two."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{number(count / factor, 3)} {unit}"
    return f"{number(count, 3)} B"


def seconds(value: float) -> str:
    """A duration in the unit that reads best."""
    if value == 0:
        return "0 s"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= factor:
            return f"{number(value / factor, 3)} {unit}"
    return f"{number(value * 1e6, 3)} µs"


def interval(ci: object, unit: str | None = None) -> str:
    """`low .. high` of an interval, an em dash without one."""
    if not isinstance(ci, list | tuple) or len(ci) != 2:
        return "—"
    text = f"{number(ci[0])} .. {number(ci[1])}"
    return text if unit is None else f"{text} {unit}"
