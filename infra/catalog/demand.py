"""What is taken of a quota, on any cloud."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """So much of a quota is taken by something with a name."""

    key: str
    amount: float
    name: str
