"""Cron expressions of five fields in the format of EventBridge Scheduler.

Source: EventBridge Scheduler user guide, "Schedule types in EventBridge Scheduler", cron-based schedules: six
fields, of which the day of the month or the day of the week is `?`; steps have a beginning (`0/15`).
"""

import re

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LEAST = (0, 0, 1, 1, 1)
"""Of minute, hour, day of the month, month and day of the week: first value of a step over all."""


def for_scheduler(expression: str) -> str | None:
    """`0 5 * * 1` as `cron(0 5 ? * MON *)`, in UTC; None where both days are set, which is not supported."""
    fields = ["*" if field == "?" else field for field in expression.upper().split()]
    _, _, day, _, weekday = fields
    if day != "*" and weekday != "*":
        return None
    fields[4] = re.sub(r"(?<![/\d])[0-6](?!\d)", lambda found: _DAYS[int(found[0])], weekday)
    stepped = [re.sub(r"^\*/", f"{least}/", field) for field, least in zip(fields, _LEAST, strict=True)]
    stepped[4 if weekday == "*" else 2] = "?"
    return f"cron({' '.join(stepped)} *)"
