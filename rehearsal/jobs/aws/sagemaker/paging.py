"""Paged lists of the service: filters by name and time, order, page token."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal.dataplane.aws.http import ServiceError

_DEFAULT_PAGE = 10  # source: botocore 1.44.5, ListTrainingJobsRequest$MaxResults
Row = Mapping[str, Any]


def matching(rows: Sequence[Row], request: Mapping[str, Any], name: str) -> list[Row]:
    """Rows that match the filters of a list request; `name` is the field with a row's name."""
    found = [row for row in rows if str(request.get("NameContains") or "") in row[name]]
    for member in ("CreationTime", "LastModifiedTime"):
        after, before = request.get(f"{member}After"), request.get(f"{member}Before")
        found = [
            row
            for row in found
            if (after is None or row.get(member, 0) > after)
            and (before is None or row.get(member, 0) < before)
        ]
    return found


def page(
    rows: Sequence[Row], request: Mapping[str, Any], by: Mapping[str, str], size: int = 0
) -> dict[str, Any]:
    """One page in the requested order, with `NextToken` where there is more.

    `by` maps values of SortBy to fields, the default first. Raises ServiceError for a token of another
    request.
    """
    member = by.get(str(request.get("SortBy")), next(iter(by.values())))
    descending = request.get("SortOrder", "Descending") == "Descending"
    ordered = sorted(rows, key=lambda row: row[member], reverse=descending)
    same = {name: value for name, value in request.items() if name not in ("NextToken", "MaxResults")}
    start = _start(request.get("NextToken"), same)
    most = int(request.get("MaxResults") or size or _DEFAULT_PAGE)
    found: dict[str, Any] = {"rows": ordered[start : start + most]}
    if start + most < len(ordered):
        token = json.dumps([start + most, same], sort_keys=True)
        found["NextToken"] = base64.b64encode(token.encode()).decode()
    return found


def _start(token: object, request: Mapping[str, Any]) -> int:
    if token is None:
        return 0
    try:
        start, same = json.loads(base64.b64decode(str(token)))
    except ValueError:
        start, same = 0, None
    if same != request:
        message = "The pagination token is invalid: it was not given out for this request."
        raise ServiceError("ValidationException", message)
    return int(start)
