"""Buying servers: the criteria one by one, and the money against a sum by hand."""

import dataclasses
from typing import Any

import pytest

from infra.errors import UserError
from trainstack.advice.ownership import LONGEST_PAYBACK, Servers, judge

ASKED = Servers(
    price_usd=300_000, gpus=8, kw=10, usd_per_kwh=0.15, staff_usd_per_year=40_000, maintenance_share=0.05,
    use=0.8, cloud_usd_per_gpu_hour=4, skills=True,
)  # fmt: skip


def changed(**values: Any) -> Servers:
    return dataclasses.replace(ASKED, **values)


def test_the_money_is_the_sum_by_hand() -> None:
    found = judge(ASKED)
    assert found.running_usd == 10 * 0.15 * 8760 + 40_000 + 15_000
    assert found.cloud_usd == pytest.approx(8 * 4 * 8760 * 0.8)
    assert found.payback_years == pytest.approx(300_000 / (224_256 - 68_140))
    assert found.break_even_use == pytest.approx((100_000 + 68_140) / 280_320)


def test_at_the_break_even_use_they_pay_in_just_the_longest_time() -> None:
    found = judge(changed(use=judge(ASKED).break_even_use))
    assert found.payback_years == pytest.approx(LONGEST_PAYBACK)


@pytest.mark.parametrize(
    ("values", "own", "reason"),
    [
        ({}, True, "in time"),
        ({"use": 0.7}, False, "not above"),
        ({"skills": False}, False, "without operators"),
        ({"price_usd": 600_000}, False, "too late"),
        ({"cloud_usd_per_gpu_hour": 1}, False, "no payback"),
        ({"use": 0.2, "must_stay": True}, True, "on premises"),
        ({"use": 0.2, "must_stay": True, "skills": False}, False, "without operators"),
    ],
)
def test_one_criterion_decides(values: dict[str, Any], own: bool, reason: str) -> None:
    found = judge(changed(**values))
    assert found.own is own
    assert any(reason in said for said in found.reasons), found.reasons


def test_impossible_servers_are_refused_all_at_once() -> None:
    with pytest.raises(UserError) as refused:
        changed(price_usd=0, kw=-1, use=1.2, maintenance_share=float("inf"))
    assert [problem.path for problem in refused.value.problems] == [
        "--kw", "--maintenance-share", "--use", "--gpus, --price-usd",
    ]  # fmt: skip
