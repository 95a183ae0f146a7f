"""The profile that suits a team."""

import pytest

from infra.errors import UserError
from trainstack.advice.profiles import profile


@pytest.mark.parametrize(
    ("people", "usd", "name"),
    [
        (1, None, "small"), (5, 15_000, "small"), (6, None, "medium"), (4, 15_001, "medium"),
        (20, 75_000, "medium"), (21, 10_000, "large"), (3, 100_000, "large"),
    ],
)  # fmt: skip
def test_the_larger_of_people_and_money_decides(people: int, usd: float | None, name: str) -> None:
    found = profile(people, usd)
    assert found.profile == name
    assert f"{people} people" in found.why


def test_a_team_without_members_is_refused() -> None:
    with pytest.raises(UserError, match="figure-out-of-range"):
        profile(0)
