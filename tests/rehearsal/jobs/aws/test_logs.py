"""Tokens, orders and filters of the logs of jobs."""

from typing import Any

import pytest

from rehearsal.jobs.log_store import LogStore, Tail
from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, Account

GROUP = {"logGroupName": "/aws/sagemaker/TrainingJobs"}


def write(account: Account, stream: str, *lines: str) -> None:
    LogStore(account.home).append(ACCOUNT, REGION, GROUP["logGroupName"], stream, list(lines))


def messages(page: dict[str, Any]) -> list[str]:
    return [event["message"] for event in page["events"]]


def test_a_reader_follows_a_stream_by_its_token(account: Account) -> None:
    write(account, "s", "1", "2", "3")
    logs = account.client("logs")
    stream = {**GROUP, "logStreamName": "s"}
    page = logs.get_log_events(**stream, startFromHead=True, limit=2)
    assert messages(page) == ["1", "2"]
    page = logs.get_log_events(**stream, nextToken=page["nextForwardToken"])
    assert messages(page) == ["3"]
    end = logs.get_log_events(**stream, nextToken=page["nextForwardToken"])
    assert messages(end) == [] and end["nextForwardToken"] == page["nextForwardToken"]
    write(account, "s", "4")
    assert messages(logs.get_log_events(**stream, nextToken=end["nextForwardToken"])) == ["4"]


def test_a_reader_goes_back(account: Account) -> None:
    write(account, "s", "1", "2", "3")
    logs = account.client("logs")
    stream = {**GROUP, "logStreamName": "s"}
    page = logs.get_log_events(**stream, limit=2)
    assert messages(page) == ["2", "3"]
    page = logs.get_log_events(**stream, nextToken=page["nextBackwardToken"])
    assert messages(page) == ["1"]
    assert messages(logs.get_log_events(**stream, nextToken=page["nextBackwardToken"])) == []


def test_an_empty_stream_has_a_token_for_later_events(account: Account) -> None:
    write(account, "s")
    logs = account.client("logs")
    stream = {**GROUP, "logStreamName": "s"}
    token = logs.get_log_events(**stream, startFromHead=True)["nextForwardToken"]
    write(account, "s", "1")
    assert messages(logs.get_log_events(**stream, nextToken=token)) == ["1"]


def test_streams_by_prefix_and_by_time(account: Account) -> None:
    for name in ("b", "a", "ab"):
        write(account, name, name)
    logs = account.client("logs")

    def names(**asked: Any) -> list[str]:
        pages = logs.get_paginator("describe_log_streams").paginate(**GROUP, **asked)
        return [one["logStreamName"] for page in pages for one in page["logStreams"]]

    assert names() == ["a", "ab", "b"]
    assert names(logStreamNamePrefix="a", PaginationConfig={"PageSize": 1}) == ["a", "ab"]
    assert names(descending=True) == ["b", "ab", "a"]


def test_events_of_streams_together(account: Account) -> None:
    write(account, "job/1", "start", "loss 0.5")
    write(account, "job/2", "loss 0.4")
    write(account, "other", "loss 9")
    logs = account.client("logs")
    found = logs.filter_log_events(**GROUP, logStreamNamePrefix="job/", filterPattern="loss")
    assert sorted(messages(found)) == ["loss 0.4", "loss 0.5"]
    pages = logs.get_paginator("filter_log_events").paginate(**GROUP, PaginationConfig={"PageSize": 1})
    assert sum(len(page["events"]) for page in pages) == 4


def test_what_does_not_exist(account: Account) -> None:
    logs = account.client("logs")
    with pytest.raises(logs.exceptions.ResourceNotFoundException, match="log group"):
        logs.describe_log_streams(**GROUP)
    write(account, "s", "1")
    with pytest.raises(logs.exceptions.ResourceNotFoundException, match="log stream"):
        logs.get_log_events(**GROUP, logStreamName="t")


def test_a_tail_returns_complete_lines_once(account: Account) -> None:
    file = account.home / "log"
    tail = Tail(file)
    assert tail.lines() == []
    file.write_bytes(b"one\ntw")
    assert tail.lines() == ["one"]
    with file.open("ab") as more:
        more.write(b"o\r\nthree")
    assert tail.lines() == ["two"]
    assert tail.lines(rest=True) == ["three"]
    assert tail.lines(rest=True) == []
