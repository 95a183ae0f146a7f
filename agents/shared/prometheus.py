"""How a program in a pod asks Prometheus; standard library only."""

import json
import urllib.parse
import urllib.request
from typing import Any

_ANSWER_S = 30.0


class SilentError(Exception):
    """Prometheus cannot be asked, or does not answer as it does."""


def over(prometheus: str, query: str, begin: float, end: float, step_s: int) -> dict[str, Any]:
    """The answer to a query over a range, with a point each `step_s` of it. Raises SilentError.

    Times are seconds since 1970 (Prometheus HTTP API, "Range queries").
    """
    words = urllib.parse.urlencode({"query": query, "start": begin, "end": end, "step": step_s})
    address = f"{prometheus.rstrip('/')}/api/v1/query_range?{words}"
    try:
        with urllib.request.urlopen(address, timeout=_ANSWER_S) as answer:  # noqa: S310 - of the stack
            found = json.load(answer)
    except (OSError, ValueError) as error:
        raise SilentError(f"{prometheus}: {error}") from error
    if not isinstance(found, dict) or found.get("status") != "success":
        raise SilentError(f"{prometheus}: no answer to a query of a range: {str(found)[:200]}")
    return found
