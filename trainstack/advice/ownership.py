"""Whether servers of one's own pay beside rented ones, and from which use on (pure).

All figures are the asker's: no source gives prices of servers, power or people that would hold for them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from infra.errors import Problem, UserError

_HOURS: Final = 8760
LEAST_USE: Final = 0.70
"""Steady use above which servers of one's own are worth a thought at all."""
LONGEST_PAYBACK: Final = 3.0
"""Years after which they must have paid for themselves: GPUs are old by then."""


@dataclass(frozen=True)
class Servers:
    """Servers that could be bought, and what they would replace. Raises UserError for impossible values."""

    price_usd: float
    """Of all of them, with network and racks."""
    gpus: int
    kw: float
    """What they draw, with cooling, while they are on: always."""
    usd_per_kwh: float
    staff_usd_per_year: float
    """People who run them, by the share of their time."""
    maintenance_share: float
    """Of the price, each year."""
    use: float
    """Share of all hours in which the GPUs train."""
    cloud_usd_per_gpu_hour: float
    """What the same GPUs cost in the cloud, as you would pay it: reserved or spot where you would."""
    skills: bool
    """Whether there are people who can run them, and a place with power and cooling."""
    must_stay: bool = False
    """Whether data may not leave the house."""

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if problems:
            raise UserError(problems)

    def _problems(self) -> Iterator[Problem]:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool):
                continue
            shared = field.name in ("use", "maintenance_share")
            if not math.isfinite(value) or value < 0 or (shared and value > 1):
                rule = "must be 0 to 1" if shared else "must not be below 0"
                yield Problem(f"--{field.name.replace('_', '-')}", value, rule, "Correct it.")
        if self.gpus < 1 or self.price_usd == 0:
            yield Problem(
                "--gpus, --price-usd", (self.gpus, self.price_usd), "must be above 0", "Correct it."
            )


@dataclass(frozen=True)
class OwnershipVerdict:
    """The answer with its figures."""

    own: bool
    running_usd: float
    """A year of power, people and maintenance."""
    cloud_usd: float
    """A year of the same GPU hours in the cloud."""
    payback_years: float | None
    """None: they never pay."""
    break_even_use: float
    """Use from which on they are cheaper over `LONGEST_PAYBACK` years; above 1: never."""
    reasons: tuple[str, ...]


def judge(asked: Servers) -> OwnershipVerdict:
    """Buy only with steady use, people and a place, and a payback in time, or where data must stay."""
    power = asked.kw * asked.usd_per_kwh * _HOURS
    running = power + asked.staff_usd_per_year + asked.maintenance_share * asked.price_usd
    whole = asked.gpus * asked.cloud_usd_per_gpu_hour * _HOURS
    cloud = whole * asked.use
    saved = cloud - running
    payback = asked.price_usd / saved if saved > 0 else None
    needed = asked.price_usd / LONGEST_PAYBACK + running
    reasons, pays = [*_reasons(asked, payback)], payback is not None and payback <= LONGEST_PAYBACK
    own = asked.skills and (asked.must_stay or (asked.use > LEAST_USE and pays))
    return OwnershipVerdict(
        own, running, cloud, payback, needed / whole if whole else math.inf, tuple(reasons)
    )


def _reasons(asked: Servers, payback: float | None) -> Iterator[str]:
    steady = "above" if asked.use > LEAST_USE else "not above"
    yield f"use of {asked.use:.0%} is {steady} the {LEAST_USE:.0%} from which on it is worth a thought"
    if payback is None:
        yield "running them costs more than the cloud: they never pay"
    else:
        late = "in time" if payback <= LONGEST_PAYBACK else "too late"
        yield f"they pay for themselves in {payback:.1f} years, {late} ({LONGEST_PAYBACK:g} years)"
    if not asked.skills:
        yield "without people who can run them and a place with power and cooling, rent"
    if asked.must_stay:
        yield "data may not leave: that decides, whatever it costs, if somebody can run them"
