"""Log lines of a training job in CloudWatch Logs, one stream per host."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from botocore import exceptions

from infra.clouds.aws.login import code_and_message
from infra.jobs.aws.account_logs import JOB_LOGS
from infra.jobs.service import LogLine


class CloudWatchLogs:
    """Log streams `<job>/<host>-<number>` with the prefix `streams`, each line once.

    Source of the names: SageMaker developer guide, "Log SageMaker Events with Amazon CloudWatch".
    """

    def __init__(self, client: Any, streams: str, asked: Callable[[], AbstractContextManager[None]]) -> None:
        self._client, self._begins, self._asked = client, streams, asked
        self._read: dict[str, str] = {}
        """Position in each stream."""
        self._waiting: list[LogLine] = []
        """Read but not returned: the connection was lost before the rest."""

    def read(self) -> Sequence[LogLine]:
        """New lines since the last call. Raises UserError and LostError."""
        with self._asked():
            for stream in self._streams():
                self._waiting.extend(self._rest(stream))
        found, self._waiting = self._waiting, []
        return found

    def _streams(self) -> list[str]:
        pages = self._client.get_paginator("describe_log_streams")
        asked = {"logGroupName": JOB_LOGS, "logStreamNamePrefix": self._begins}
        try:
            return [row["logStreamName"] for page in pages.paginate(**asked) for row in page["logStreams"]]
        except exceptions.ClientError as error:
            if (
                code_and_message(error)[0] == "ResourceNotFoundException"
            ):  # the first job of an account creates the group
                return []
            raise

    def _rest(self, stream: str) -> Iterator[LogLine]:
        host = stream.removeprefix(self._begins).rpartition("-")[0] or stream
        while True:
            after = self._read.get(stream)
            asked = {"nextToken": after} if after else {}
            page = self._client.get_log_events(
                logGroupName=JOB_LOGS, logStreamName=stream, startFromHead=True, **asked
            )
            # A page may be empty although others follow; at the end, the token repeats.
            self._read[stream] = page["nextForwardToken"]
            yield from (LogLine(host, event["message"].rstrip("\n")) for event in page["events"])
            if page["nextForwardToken"] == after:
                return
