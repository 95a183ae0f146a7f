"""Lists of values that grow."""

import pytest

from rehearsal.core.rules.open_lists import nearest


@pytest.mark.parametrize(
    ("value", "near"),
    [
        ("13.8", "13.23"),
        ("9.6.1", "16.15"),  # no version 9 is left
        ("1.8", "17.8"),
        ("python3.6", "python3.9"),
        ("python2.7", "python3.9"),
    ],
)
def test_the_nearest_version_is_of_the_same_major_one(value: str, near: str) -> None:
    known = ["13.23", "16.15", "17.8", "python3.12", "python3.9", "provided.al2"]
    assert nearest(value, known) == near
