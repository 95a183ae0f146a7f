"""Comparison of owned servers with rented ones: payback and break-even utilization (pure).

All figures come from the user: no source has general prices of servers, power or operators.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from infra.errors import Problem, UserError

_HOURS: Final = 8760
LEAST_USE: Final = 0.70
"""Steady utilization above which owned servers are considered."""
LONGEST_PAYBACK: Final = 3.0
"""Longest payback in years: older GPUs are obsolete."""


@dataclass(frozen=True)
class Servers:
    """Servers that could be bought, and the cloud use they replace. Raises UserError for invalid values."""

    price_usd: float
    """Price of all servers, with network and racks."""
    gpus: int
    kw: float
    """Permanent power of all servers, with cooling."""
    usd_per_kwh: float
    staff_usd_per_year: float
    """Cost of operators, by the share of their time."""
    maintenance_share: float
    """Of the price, each year."""
    use: float
    """Share of all hours in which the GPUs train."""
    cloud_usd_per_gpu_hour: float
    """Price of the same GPU in the cloud, reserved or spot where the user would buy it so."""
    skills: bool
    """Operators and a site with power and cooling are available."""
    must_stay: bool = False
    """Data must stay on premises."""

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
                fix = "Correct it."
                yield Problem(
                    f"--{field.name.replace('_', '-')}", value, rule, fix, code="figure-out-of-range"
                )
        if self.gpus < 1 or self.price_usd == 0:
            values, rule = (self.gpus, self.price_usd), "must be above 0"
            yield Problem("--gpus, --price-usd", values, rule, "Correct it.", code="figure-out-of-range")


@dataclass(frozen=True)
class OwnershipVerdict:
    """The recommendation with its figures."""

    own: bool
    running_usd: float
    """A year of power, people and maintenance."""
    cloud_usd: float
    """A year of the same GPU hours in the cloud."""
    payback_years: float | None
    """None: never."""
    break_even_use: float
    """Utilization above which they are cheaper over `LONGEST_PAYBACK` years; above 1: never."""
    reasons: tuple[str, ...]


def judge(asked: Servers) -> OwnershipVerdict:
    """Recommend buying only with steady use, operators, a site and timely payback, or for local data."""
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
    yield f"utilization of {asked.use:.0%} is {steady} the minimum of {LEAST_USE:.0%}"
    if payback is None:
        yield "operation costs more than the cloud: no payback"
    else:
        late = "in time" if payback <= LONGEST_PAYBACK else "too late"
        yield f"payback in {payback:.1f} years, {late} (limit {LONGEST_PAYBACK:g} years)"
    if not asked.skills:
        yield "without operators and a site with power and cooling, rent"
    if asked.must_stay:
        yield "data must stay on premises, which decides if operators are available"
