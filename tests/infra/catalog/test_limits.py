"""Limits of single values: what is accepted, and the nearest value where it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog import kubernetes
from infra.catalog.aws import facts
from infra.catalog.limits import Limit

LIMITS = {**facts.limits, **kubernetes.limits}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("node_group_max", 0, "1 to 450"),
        ("node_group_max", 451, "Set 450."),
        ("aurora_min_acu", 0.7, "Set 0.5."),
        ("aurora_max_acu", 0.5, "Set 1."),
        ("log_retention_days", 100, "Set 90."),
        ("kueue_weight", 5000, "0.001 to 1000"),
        ("kueue_weight", float("nan"), "Set 0.001."),
        ("kueue_weight", float("inf"), "Set 1000."),
    ],
)
def test_a_value_beyond_the_limit_is_reported_what_fits(key: str, value: float, words: str) -> None:
    (problem,) = LIMITS[key].problems("some.path", value)
    assert str(problem).startswith("some.path: ")
    assert words in str(problem)


@given(limit=st.sampled_from(list(LIMITS.values())), value=st.floats(-1e6, 1e6))
def test_what_is_offered_as_a_fix_is_accepted(limit: Limit, value: float) -> None:
    for problem in limit.problems("path", value):
        fix = float(problem.fix.removeprefix("Set ").removesuffix("."))
        assert not list(limit.problems("path", fix))


def test_every_limit_has_a_source_and_a_date() -> None:
    assert all(len(limit.source) > 8 and limit.date for limit in LIMITS.values())
