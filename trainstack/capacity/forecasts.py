"""Forecast of GPU-hours of a month from daily hours, with an error from the same history (pure).

The forecast of a day is the mean of the same weekday over the last four weeks: a seasonal-naive forecast,
averaged (Hyndman, Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., section 5.2). Its error is
measured by time series cross-validation (same book, section 5.10): the same forecast, as far ahead and of as
many days, is made at earlier days, a week apart, and compared with what followed. The stated error is that
of split conformal prediction (Lei and others, "Distribution-Free Predictive Inference for Regression", JASA
2018): of n absolute errors the k-th smallest, k = ceil(0.8 (n + 1)), contains the next one with a probability
of 80 % if errors of the past and the future are exchangeable. Backtests a week apart overlap, so 80 % is
approximate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TRAINING_DAYS: Final = 28
"""Days that a forecast is made from."""
_WEEK: Final = 7
LEAST_BACKTESTS: Final = 4
"""With fewer, no error contains 80 %: ceil(0.8 (n + 1)) <= n needs n >= 4."""
SHARE: Final = 0.8
"""Probability that the error contains the difference."""


@dataclass(frozen=True)
class BackTest:
    """The same forecast, made on an earlier day, and what followed."""

    day: int
    """The first day that it forecast, counted from the first day of the history."""
    forecast: float
    """GPU-hours."""
    actual: float


@dataclass(frozen=True)
class HoursForecast:
    """GPU-hours of a month."""

    hours: float
    error: float
    """GPU-hours; the actual value is within `hours` +- `error` with a probability of about 80 %."""
    backtests: int
    """Number of backtests that the error is computed from."""
    days: int
    """Days of history."""
    tests: tuple[BackTest, ...] = ()
    """The backtests, the latest first."""

    @property
    def low(self) -> float:
        """Lower end, at least 0."""
        return max(0.0, self.hours - self.error)

    @property
    def high(self) -> float:
        """Upper end."""
        return self.hours + self.error

    @property
    def ends(self) -> tuple[float, float, float]:
        """Lower end, forecast, upper end."""
        return self.low, self.hours, self.high


@dataclass(frozen=True)
class TooShort:
    """Not enough history for a forecast with an error."""

    days: int
    needed: int

    def __str__(self) -> str:
        return f"not enough history: {self.days} days, {self.needed} are needed"


def needed_days(lead: int, length: int) -> int:
    """Days of history that a forecast needs."""
    return TRAINING_DAYS + lead + length + (LEAST_BACKTESTS - 1) * _WEEK


def forecast(daily: Sequence[float], lead: int, length: int) -> HoursForecast | TooShort:
    """The sum of `length` days that begin `lead` days after the last of `daily`, which has no gaps."""
    if len(daily) < (needed := needed_days(lead, length)):
        return TooShort(len(daily), needed)
    tests: list[BackTest] = []
    origin = len(daily) - lead - length
    while origin >= TRAINING_DAYS:
        first = origin + lead
        tests.append(BackTest(first, _sum(daily[:origin], lead, length), sum(daily[first : first + length])))
        origin -= _WEEK
    errors = sorted(abs(one.actual - one.forecast) for one in tests)
    error = errors[_rank(len(errors)) - 1]
    return HoursForecast(_sum(daily, lead, length), error, len(errors), len(daily), tuple(tests))


def _rank(count: int) -> int:
    """The k of the split conformal interval, from 1; exact where 0.8 (n + 1) is whole."""
    return math.ceil(round(SHARE * (count + 1), 9))


def _sum(daily: Sequence[float], lead: int, length: int) -> float:
    """The forecast from the last four weeks of `daily`."""
    last = daily[-TRAINING_DAYS:]
    # The day after the last one has the weekday of the first of the four weeks.
    weekdays = [sum(last[place::_WEEK]) * _WEEK / TRAINING_DAYS for place in range(_WEEK)]
    return sum(weekdays[day % _WEEK] for day in range(lead, lead + length))
