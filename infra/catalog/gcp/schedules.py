"""Cron expressions of five fields in the format of Cloud Scheduler.

Source: Cloud Scheduler documentation, "Cron job format and time zone" (read 2026-11-26): unix-cron, where a
step follows `*` or a range, names are in capitals, and a day of the month and one of the week together mean
either of them, as they do for Kubernetes. `?` is not supported.
"""

import re
from typing import Final

_MOST: Final = (59, 23, 31, 12, 6)
"""Of minute, hour, day of the month, month and day of the week."""


def for_scheduler(expression: str) -> str:
    """An expression that `infra.stackspec.cron` accepts, such as `5/20 6 ? * mon` as `5-59/20 6 * * MON`."""
    fields = expression.upper().replace("?", "*").split()
    return " ".join(
        re.sub(r"(?<![-\w])(\w+)/", rf"\1-{most}/", field) for field, most in zip(fields, _MOST, strict=True)
    )
