"""Range queries to Prometheus; standard library only."""

import json
import urllib.parse
import urllib.request
from typing import Any

_ANSWER_S = 30.0


class PrometheusError(Exception):
    """Prometheus cannot be reached, or its response is invalid."""


def over(prometheus: str, query: str, begin: float, end: float, step_s: int) -> dict[str, Any]:
    """The response to a query over a range, with a point each `step_s` of it. Raises PrometheusError.

    Times are seconds since 1970 (Prometheus HTTP API, "Range queries").
    """
    query_string = urllib.parse.urlencode({"query": query, "start": begin, "end": end, "step": step_s})
    address = f"{prometheus.rstrip('/')}/api/v1/query_range?{query_string}"
    try:
        with urllib.request.urlopen(address, timeout=_ANSWER_S) as response:  # noqa: S310 - of the stack
            found = json.load(response)
    except (OSError, ValueError) as error:
        raise PrometheusError(f"{prometheus}: {error}") from error
    if not isinstance(found, dict) or found.get("status") != "success":
        raise PrometheusError(f"{prometheus}: no result of a range query: {str(found)[:200]}")
    return found
