"""Cron expressions in the format of Kubernetes (robfig/cron v3 `ParseStandard`, used by its validation)."""

import re

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("day of the week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


def problem(expression: str) -> str | None:
    """The problem of an expression of five fields; None if Kubernetes accepts it.

    Macros (`@daily`) and time zones are excluded on purpose: five fields in UTC have one meaning everywhere.
    """
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        return f"a schedule has five fields, minute to day of the week; got {len(fields)}"
    for text, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if not _fits(part.lower(), low, high, names):
                return f"{part!r} is not a {name}: {low} to {high}, a range a-b, a step */n, or *"
    return None


def often(expression: str) -> bool:
    """Return whether a valid expression names more than one minute of an hour."""
    return re.fullmatch(r"\d+", expression.split(maxsplit=1)[0]) is None


def _fits(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    span, slash, step = part.partition("/")
    if slash and not (step.isdigit() and int(step) >= 1):
        return False
    if span in ("*", "?"):
        return True
    ends = [_number(end, low, names) for end in span.split("-")]
    if len(ends) > 2 or any(end is None or not low <= end <= high for end in ends):
        return False
    known = [end for end in ends if end is not None]
    return known == sorted(known)


def _number(text: str, low: int, names: tuple[str, ...]) -> int | None:
    """The value of a number or of a name such as `mon`; names count from the lowest value."""
    if text in names:
        return names.index(text) + low
    return int(text) if text.isdigit() and text.isascii() else None
