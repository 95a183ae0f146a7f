"""CloudWatch Logs for boto3: DescribeLogGroups, DescribeLogStreams, GetLogEvents, FilterLogEvents.

Source: Amazon CloudWatch Logs API Reference (orders, defaults, tokens) and botocore 1.44.5 logs/2014-03-28.
"""

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import JsonService, Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import OPERATOR
from rehearsal.jobs.log_store import LogStore, between, events, shown

_MOST_EVENTS, _MOST_STREAMS = 10_000, 50
_TOKEN = re.compile(r"(f|b)/(\d+)/s")


class LogsApi(JsonService):
    """Reads the logs of jobs and functions."""

    target = "Logs_20140328"

    def __init__(self, state: State, store: LogStore) -> None:
        self._state, self._store = state, store

    def operations(self) -> Mapping[str, Operation]:
        """See `JsonService`."""
        return {
            "DescribeLogGroups": self._groups,
            "DescribeLogStreams": self._describe,
            "GetLogEvents": self._get,
            "FilterLogEvents": self._filter,
        }

    def _groups(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("logs", request.action, body)
        self._authorise(request, "*")
        prefix = str(body.get("logGroupNamePrefix") or "")
        names = [
            name for name in self._store.groups(_account(request), request.region) if name.startswith(prefix)
        ]
        return {"logGroups": [{"logGroupName": name, "arn": _arn(request, name)} for name in sorted(names)]}

    def _describe(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        group, streams = self._streams(request, body)
        prefix, by_time = str(body.get("logStreamNamePrefix") or ""), body.get("orderBy") == "LastEventTime"
        if prefix and by_time:
            message = "Cannot order by LastEventTime with a logStreamNamePrefix."
            raise ServiceError("InvalidParameterException", message)
        rows = [
            _stream(request, group, name, path) for name, path in streams.items() if name.startswith(prefix)
        ]
        key = "lastEventTimestamp" if by_time else "logStreamName"
        rows.sort(key=lambda row: row.get(key, 0), reverse=bool(body.get("descending")))
        start = _offset(body.get("nextToken"))
        most = min(int(body.get("limit") or _MOST_STREAMS), _MOST_STREAMS)
        found: dict[str, Any] = {"logStreams": rows[start : start + most]}
        if start + most < len(rows):
            found["nextToken"] = _opaque(start + most)
        return found

    def _get(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        """One page; at the end of the stream the same token is returned, for later events."""
        _, streams = self._streams(request, body)
        name = str(body.get("logStreamName"))
        if name not in streams:
            raise ServiceError("ResourceNotFoundException", "The specified log stream does not exist.")
        found = list(between(events(streams[name]), body.get("startTime"), body.get("endTime")))
        most = min(int(body.get("limit") or _MOST_EVENTS), _MOST_EVENTS)
        token = str(body.get("nextToken") or "")
        if token:
            match = _TOKEN.fullmatch(token)
            if match is None:
                message = "The specified nextToken is invalid."
                raise ServiceError("InvalidParameterException", message)
            place = int(match[2])
            page = (
                [event for event in found if event.number >= place][:most]
                if match[1] == "f"
                else [event for event in found if event.number < place][-most:]
            )
        else:
            place = found[-1].number + 1 if found else 0
            page = found[:most] if body.get("startFromHead") else found[-most:]
        first, last = (page[0].number, page[-1].number + 1) if page else (place, place)
        return {
            "events": [shown(event) for event in page],
            "nextForwardToken": f"f/{last}/s",
            "nextBackwardToken": f"b/{first}/s",
        }

    def _filter(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        """Events of several streams by time, with all terms of the pattern (others are refused)."""
        _, streams = self._streams(request, body)
        prefix, names = str(body.get("logStreamNamePrefix") or ""), body.get("logStreamNames")
        chosen = {
            name: path
            for name, path in streams.items()
            if name.startswith(prefix) and (not names or name in names)
        }
        terms = _terms(str(body.get("filterPattern") or ""))
        found = [
            event
            for name, path in chosen.items()
            for event in between(events(path, name), body.get("startTime"), body.get("endTime"))
            if all(word in event.message for word in terms)
        ]
        found.sort(key=lambda event: event.timestamp)  # stable: keeps the order within a stream
        start, most = (
            _offset(body.get("nextToken")),
            min(int(body.get("limit") or _MOST_EVENTS), _MOST_EVENTS),
        )
        rows = [
            shown(event, logStreamName=event.stream, eventId=f"{event.timestamp:020d}{event.number:016d}")
            for event in found[start : start + most]
        ]
        more = {"nextToken": _opaque(start + most)} if start + most < len(found) else {}
        return {"events": rows, "searchedLogStreams": [], **more}

    def _streams(self, request: Request, body: dict[str, Any]) -> tuple[str, dict[str, Path]]:
        """The requested group and its streams. Raises ServiceError."""
        shapes.check("logs", request.action, body)
        group = str(body.get("logGroupName") or body.get("logGroupIdentifier") or "")
        group = group.partition(":log-group:")[2].removesuffix(":*") or group
        self._authorise(request, _arn(request, group))
        try:
            return group, self._store.streams(_account(request), request.region, group)
        except KeyError:
            message = "The specified log group does not exist."
            raise ServiceError("ResourceNotFoundException", message) from None

    def _authorise(self, request: Request, resource: str) -> None:
        check = AccessCheck(f"logs:{request.action}", resource, context_of(request.region))
        authorise(self._state, request.caller, [check])


def _account(request: Request) -> str | None:
    """The account whose logs are read; the operator reads those of every account."""
    return None if request.caller == OPERATOR else request.caller.account


def _arn(request: Request, group: str) -> str:
    return f"arn:aws:logs:{request.region}:{request.caller.account}:log-group:{group}:*"


def _stream(request: Request, group: str, name: str, path: Path) -> dict[str, Any]:
    found = events(path)
    row: dict[str, Any] = {
        "logStreamName": name,
        "arn": f"{_arn(request, group).removesuffix('*')}log-stream:{name}",
        "uploadSequenceToken": "0",
        "storedBytes": 0,  # "always zero" for streams since 2019 (botocore 1.44.5, LogStream$storedBytes)
    }
    if found:
        times = {"firstEventTimestamp": found[0].timestamp, "lastEventTimestamp": found[-1].timestamp}
        row |= {"creationTime": found[0].timestamp, **times, "lastIngestionTime": found[-1].timestamp}
    return row


def _terms(pattern: str) -> list[str]:
    """The terms of a plain pattern. Raises ServiceError for patterns that are not emulated."""
    if re.search(r"[{}\[\]?%]|(^|\s)-", pattern):
        message = f"A rehearsal supports patterns of plain terms only, not {pattern!r}"
        raise ServiceError("InvalidParameterException", message)
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', pattern)]


def _opaque(offset: int) -> str:
    return base64.urlsafe_b64encode(str(offset).encode()).decode()


def _offset(token: object) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(str(token)))
    except ValueError:
        raise ServiceError("InvalidParameterException", "The specified nextToken is invalid.") from None
