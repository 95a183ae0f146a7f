"""FSx for Lustre sizes: what is refused, why, and that the fix offered is accepted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog.aws import facts

LUSTRE = facts.lustre
TIERS = st.sampled_from([125, 250, 500, 1000])


@pytest.mark.parametrize(
    ("capacity_gib", "throughput", "efa"),
    [
        (1200, 125, False),
        (2400, 1000, False),
        (7200, 250, False),
        (38400, 125, True),
        (19200, 250, True),
        (9600, 500, True),
        (4800, 1000, True),
        (9600, 1000, True),
    ],
)
def test_accepts_what_fsx_accepts(capacity_gib: int, throughput: int, efa: bool) -> None:
    assert LUSTRE.lustre_problem(capacity_gib, throughput, efa) is None


@pytest.mark.parametrize(
    ("capacity_gib", "throughput", "efa", "words"),
    [
        (3600, 125, False, "set 2400 or 4800"),
        (0, 125, False, "set 1200 GiB"),
        (-2400, 125, False, "set 1200 GiB"),
        (1800, 125, False, "1200 or 2400"),
        (4800, 125, True, "multiple of 38400"),
        (1200, 1000, True, "set 4800 GiB"),
        (4800, 500, True, "set 9600 GiB"),
        (9600, 250, True, "set 19200 GiB"),
        (40000, 125, True, "38400 or 76800"),
        (2400, 300, False, "set 250"),
    ],
)
def test_refuses_with_rule_and_fix(capacity_gib: int, throughput: int, efa: bool, words: str) -> None:
    problem = LUSTRE.lustre_problem(capacity_gib, throughput, efa)
    assert problem is not None
    assert words in problem


@given(capacity_gib=st.integers(-5000, 400_000), throughput=TIERS, efa=st.booleans())
def test_every_size_offered_as_a_fix_is_accepted(capacity_gib: int, throughput: int, efa: bool) -> None:
    problem = LUSTRE.lustre_problem(capacity_gib, throughput, efa)
    if problem is None:
        return
    offered = [int(size) for size in re.findall(r"\d+", problem.split("; set ")[1])]
    assert offered
    for size in offered:
        assert LUSTRE.lustre_problem(size, throughput, efa) is None


@given(throughput=TIERS, efa=st.booleans(), count=st.integers(1, 8))
def test_capacities_are_the_smallest_accepted_ones(throughput: int, efa: bool, count: int) -> None:
    sizes = LUSTRE.capacities(throughput, efa=efa, count=count)
    accepted = [
        size
        for size in range(600, sizes[-1] + 1, 600)
        if LUSTRE.lustre_problem(size, throughput, efa) is None
    ]
    assert list(sizes) == accepted


def test_efa_starts_at_the_same_total_throughput_in_every_tier() -> None:
    """The four steps of the FSx guide are one rule: capacity grows as the tier's throughput falls."""
    totals = {tier.efa_capacity_step_gib * throughput for throughput, tier in LUSTRE.tiers.items()}
    assert totals == {4800 * 1000}
