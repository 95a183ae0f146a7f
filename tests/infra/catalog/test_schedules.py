"""Times of repetitions in EventBridge's words."""

import re

import pytest

from infra.catalog.aws.schedules import for_scheduler


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0 5 1 * *", "cron(0 5 1 * ? *)"),
        ("30 4 * * 1", "cron(30 4 ? * MON *)"),
        ("30 4 * * mon-fri", "cron(30 4 ? * MON-FRI *)"),
        ("0 0 * * 0,6", "cron(0 0 ? * SUN,SAT *)"),
        ("*/15 * * * *", "cron(0/15 * * * ? *)"),
        ("0 */6 */2 jan ?", "cron(0 0/6 1/2 jan ? *)"),
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
