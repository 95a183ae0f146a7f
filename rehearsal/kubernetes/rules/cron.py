"""Schedules of CronJobs, as the parser of the API server reads them.

Source: github.com/robfig/cron/v3 parser.go (ParseStandard), which kubernetes/kubernetes
pkg/apis/batch/validation/validation.go (validateScheduleFormat) calls.
"""

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
# Lowest and highest value of a field, and its names.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DURATION = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")


def schedule(value: str) -> str | None:
    """The error of a schedule, or None."""
    if value.startswith("@"):
        every = value.removeprefix("@every ")
        fits = value in _NAMED or (every != value and _DURATION.fullmatch(every) is not None)
        return None if fits else f"unrecognized descriptor: {value}"
    fields = value.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if part and (wrong := _part(part, low, high, names)):
                return wrong
    return None


def _part(part: str, low: int, high: int, names: dict[str, int]) -> str | None:
    span, *steps = part.split("/")
    first, *rest = span.split("-")
    if len(steps) > 1 or len(rest) > 1:
        return f"too many {'slashes' if len(steps) > 1 else 'hyphens'}: {part}"
    if first in ("*", "?"):
        start, end = low, high
    else:
        ends = [_number(one, names) for one in (first, *rest)]
        if None in ends:
            return f"failed to parse int from {span}"
        start = ends[0] or 0
        end = (ends[-1] or 0) if rest else (high if steps else start)
    if steps and (not steps[0].isdecimal() or int(steps[0]) == 0):
        return f"step of range should be a positive number: {part}"
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {part}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {part}"
    return f"beginning of range ({start}) beyond end of range ({end}): {part}" if start > end else None


def _number(text: str, names: dict[str, int]) -> int | None:
    if text.lower() in names:
        return names[text.lower()]
    return int(text) if text.isdecimal() else None
