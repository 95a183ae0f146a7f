"""Cloud Logging: entries.list, for logs of custom jobs and jobs that Cloud Scheduler started.

Source: Cloud Logging API v2 reference (entries.list, LogEntry); monitored resource `ml_job` with the labels
job_id, task_name and project_id (Cloud Logging documentation, "Monitored resource types").
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.gcp import scheduler
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed_in_project
from rehearsal.jobs.gcp.filters import parsed
from rehearsal.jobs.gcp.vertex.records import CustomJob, CustomJobStore
from rehearsal.jobs.gcp.vertex.runner import log_group
from rehearsal.jobs.log_store import LogStore, events

_MOST, _DEFAULT = 1000, 50  # entries of a page
_ORDERS = ("", "timestamp asc", "timestamp desc")


class LogEntries:
    """See `http.Api`."""

    def __init__(self, state: State, logs: LogStore) -> None:
        self._state, self._logs, self._store = state, logs, CustomJobStore(state)

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        return (Method("POST", r"v2/entries:list", self._list),)

    def _list(self, call: ApiCall) -> Answer:
        body = call.body
        projects = [str(one).removeprefix("projects/") for one in body.get("resourceNames") or ()]
        if not projects:
            raise ServiceError(400, "The resource_names field is required.")
        for project in projects:
            right = "logging.logEntries.list"
            if not allowed_in_project(self._state, call.caller.members, right, project):
                raise ServiceError(403, "Permission denied for all log views")
        order = str(body.get("orderBy") or "")
        if order not in _ORDERS:
            raise ServiceError(400, f"order_by must be one of {', '.join(_ORDERS[1:])}, not {order}.")
        wanted = parsed(str(body.get("filter") or ""), _field)
        rows = [row for row in self._rows(projects) if wanted(row)]
        # Stable: lines with the same time keep their order.
        rows.sort(key=lambda row: row["timestamp"], reverse=order.endswith("desc"))
        start = _start(body)
        size = min(int(body.get("pageSize") or _DEFAULT), _MOST)
        more = {"nextPageToken": _token(start + size, body)} if start + size < len(rows) else {}
        return {**({"entries": page} if (page := rows[start : start + size]) else {}), **more}

    def _rows(self, projects: Sequence[str]) -> Iterator[dict[str, Any]]:
        for job in self._store.all():
            if job.project in projects:
                yield from self._of(job)
        for project in projects:
            yield from scheduler.entries(self._state, project)

    def _of(self, job: CustomJob) -> Iterator[dict[str, Any]]:
        try:
            streams = self._logs.streams(job.project, job.region, log_group(job))
        except KeyError:
            return
        for stream, path in streams.items():
            labels = {"job_id": job.id, "task_name": stream, "project_id": job.project}
            for event in events(path, stream):
                moment = datetime.fromtimestamp(event.timestamp / 1000, UTC)
                # Lines of one millisecond get distinct times in their order, as in the service.
                text = (
                    f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}{event.number % 10**6:06d}Z"
                )
                yield {
                    "insertId": f"{job.id}-{stream}-{event.number:09d}",
                    "logName": f"projects/{job.project}/logs/{stream}",
                    "resource": {"type": "ml_job", "labels": labels},
                    "timestamp": text,
                    "receiveTimestamp": text,
                    "severity": "INFO",
                    "jsonPayload": {"message": event.message, "levelname": "INFO"},
                    "labels": {"ml.googleapis.com/job_id/log_area": "root"},
                }


def _field(row: Mapping[str, Any], name: str) -> str | None:
    """A field of an entry by its path, such as `resource.labels.job_id`."""
    found: Any = row
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return None if found is None else str(found)


def _token(start: int, body: Mapping[str, Any]) -> str:
    return base64.b64encode(json.dumps([start, _same(body)]).encode()).decode()


def _start(body: Mapping[str, Any]) -> int:
    """Offset at which a page begins. Raises ServiceError for a token of another request."""
    token = body.get("pageToken")
    if not token:
        return 0
    try:
        start, same = json.loads(base64.b64decode(str(token)))
    except ValueError:
        start, same = 0, None
    if same != _same(body):
        raise ServiceError(400, "page_token doesn't match arguments from the request")
    return int(start)


def _same(body: Mapping[str, Any]) -> list[Any]:
    return [body.get("resourceNames"), body.get("filter"), body.get("orderBy")]
