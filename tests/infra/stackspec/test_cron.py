"""Cron expressions as Kubernetes accepts them."""

import pytest

from infra.stackspec import cron


@pytest.mark.parametrize(
    "good",
    [
        "0 5 * * 1",
        "15 0,12 1-7 * mon-fri",
        "0 */6 * JAN,jul ?",
        "5 4 31 12 6",
        "0  5 * * *",
        "0 8-18/2 * * *",
    ],
)
def test_what_kubernetes_takes_is_taken(good: str) -> None:
    assert cron.problem(good) is None
    assert not cron.often(good)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ("", "got 0"),
        ("@daily", "got 1"),
        ("0 5 * *", "got 4"),
        ("0 5 * * * *", "got 6"),
        ("60 5 * * 1", "minute: 0 to 59"),
        ("0 24 * * 1", "hour"),
        ("0 5 0 * 1", "day of the month: 1 to 31"),
        ("0 5 * 13 1", "month"),
        ("0 5 * * 7", "day of the week: 0 to 6"),
        ("0 5 * * fri-mon", "day of the week"),
        ("0 5-3 * * 1", "hour"),
        ("*/0 5 * * 1", "minute"),
        ("0 5 * * 1-2-3", "day of the week"),
        ("-1 5 * * 1", "minute"),
        ("0 \u0665 * * 1", "hour"),
        ("0, 5 * * 1", "minute"),
    ],
)
def test_invalid_expressions_are_refused_by_field(bad: str, field: str) -> None:
    assert field in str(cron.problem(bad))


@pytest.mark.parametrize("often", ["* * * * *", "*/5 5 * * 1", "0,30 5 * * 1", "0-3 5 * * 1"])
def test_more_than_once_an_hour_is_noticed(often: str) -> None:
    assert cron.problem(often) is None and cron.often(often)
