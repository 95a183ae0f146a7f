"""The lines of a custom job in Cloud Logging."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from infra.jobs.gcp.described import moment
from infra.jobs.service import LogLine, Moment

# Entries can arrive out of order, and up to a minute late (Cloud Logging documentation, "Troubleshooting"),
# so the last of them are requested again; each is returned once.
_LATE = datetime.timedelta(seconds=60)
PAGE = 1000

Entries = Callable[[str], Iterator[Mapping[str, Any]]]
"""Requests entries by a filter, page by page, ordered by time."""


class CloudLogging:
    """Entries of the resource `ml_job` of one job, each line once.

    Sources: Cloud Logging API v2 (entries.list); the Cloud SDK's log fetcher of training jobs
    (command_lib/ml_engine/log_utils.py) for the names of resource and labels.
    """

    def __init__(self, job: str, created: Moment, entries: Entries) -> None:
        self._job, self._entries = job, entries
        self._from = created
        self._known: dict[str, Moment] = {}
        """Times of entries that may be returned again, by id."""
        self._waiting: list[LogLine] = []
        """Read but not returned: the connection was lost before the rest."""

    def read(self) -> Sequence[LogLine]:
        """New lines since the last call. Raises UserError and LostError."""
        since = f"{self._from:%Y-%m-%dT%H:%M:%S}Z"
        wanted = f'resource.type="ml_job" AND resource.labels.job_id="{self._job}" AND timestamp>="{since}"'
        for entry in self._entries(wanted):
            key, at = str(entry.get("insertId")), moment(str(entry["timestamp"]))
            if key in self._known:
                continue
            self._known[key] = at
            labels = (entry.get("resource") or {}).get("labels") or {}
            self._waiting.append(LogLine(str(labels.get("task_name", "")), _text(entry)))
        if self._known:
            self._from = max(self._from, max(self._known.values()) - _LATE)
            whole = self._from.replace(microsecond=0)
            self._known = {key: at for key, at in self._known.items() if at >= whole}
        found, self._waiting = self._waiting, []
        return found


def _text(entry: Mapping[str, Any]) -> str:
    payload = entry.get("jsonPayload")
    if isinstance(payload, Mapping):
        return str(payload.get("message", payload)).rstrip("\n")
    return str(entry.get("textPayload", "")).rstrip("\n")
