"""The profile that suits a team, by its size and monthly spending on training (pure).

The bounds are those of the profiles themselves: 1 to 5, 5 to 20 and more than 20 people, who spend about
$5,000 to 15,000, 15,000 to 75,000 and 75,000 to 500,000 and more.
"""

from dataclasses import dataclass
from typing import Final, Literal

from infra.errors import Problem, UserError

Profile = Literal["small", "medium", "large"]
_ORDER: Final[tuple[Profile, ...]] = ("small", "medium", "large")
_PEOPLE: Final = (5, 20)
_USD: Final = (15_000, 75_000)
_WHAT: Final = {
    "small": "managed training, no cluster to operate (with one: small-cluster)",
    "medium": "one shared cluster with queues and quotas",
    "large": "several clusters, fair share and chargeback",
}


@dataclass(frozen=True)
class Suited:
    """A profile and the reasons for it."""

    profile: Profile
    why: str


def profile(people: int, usd_per_month: float | None = None) -> Suited:
    """The larger of the profiles for people and spending. Raises UserError for fewer than one person."""
    if people < 1:
        fix = "Count the members who train."
        raise UserError([Problem("--people", people, "must be at least 1", fix, code="figure-out-of-range")])
    by_people = sum(people > most for most in _PEOPLE)
    why = f"{people} people"
    chosen = by_people
    if usd_per_month is not None:
        by_money = sum(usd_per_month > most for most in _USD)
        if by_money > by_people:
            chosen, why = by_money, f"${usd_per_month:,.0f} a month, though {people} people alone need less"
        else:
            why += f" and ${usd_per_month:,.0f} a month"
    name = _ORDER[chosen]
    return Suited(name, f"{why}: {_WHAT[name]}")
