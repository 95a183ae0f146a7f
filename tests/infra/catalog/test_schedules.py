"""Times of repetitions in the words of EventBridge and of Cloud Scheduler."""

import re

import pytest

from infra.catalog.aws.schedules import for_scheduler
from infra.catalog.gcp.schedules import for_scheduler as on_gcp
from infra.stackspec import cron


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0 5 1 * *", "cron(0 5 1 * ? *)"),
        ("30 4 * * 1", "cron(30 4 ? * MON *)"),
        ("30 4 * * mon-fri", "cron(30 4 ? * MON-FRI *)"),
        ("0 0 * * 0,6", "cron(0 0 ? * SUN,SAT *)"),
        ("*/15 * * * *", "cron(0/15 * * * ? *)"),
        ("0 */6 */2 jan ?", "cron(0 0/6 1/2 JAN ? *)"),
        ("0 5 1 * 1", None),
    ],
)
def test_five_fields_become_six(given: str, expected: str | None) -> None:
    assert for_scheduler(given) == expected


def test_exactly_one_of_the_days_is_left_open() -> None:
    for given in ("0 5 1 * *", "0 5 * * 3", "1 2 * 3 *"):
        found = for_scheduler(given)
        assert found is not None
        fields = re.sub(r"cron\((.*)\)", r"\1", found).split()
        assert len(fields) == 6 and [fields[2], fields[4]].count("?") == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0 5 * * 1", "0 5 * * 1"),
        ("0 5 1 * 1", "0 5 1 * 1"),
        ("0 5 ? * mon-fri", "0 5 * * MON-FRI"),
        ("5/20 6 * jan/3 sun,2/3", "5-59/20 6 * JAN-12/3 SUN,2-6/3"),
        ("*/15 0-6/2 * * *", "*/15 0-6/2 * * *"),
        ("0,30/10 1/4 28/2 * *", "0,30-59/10 1-23/4 28-31/2 * *"),
    ],
)
def test_google_takes_unix_cron_where_a_step_follows_a_range(given: str, expected: str) -> None:
    assert cron.problem(given) is None
    assert on_gcp(given) == expected
    for field in expected.split():
        steps = [part.partition("/")[0] for part in field.split(",") if "/" in part]
        assert all(one == "*" or "-" in one for one in steps)
