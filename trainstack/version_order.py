"""The order of versions."""

import re


def order(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version))
