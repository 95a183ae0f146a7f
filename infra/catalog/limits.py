"""Limits of a single value: a range, a range in steps, or a list."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.catalog.fact import Fact, Name
from infra.catalog.tables import read_table
from infra.errors import Problem


class Limit(Fact):
    """One limit: `least` to `most`, where given in multiples of `step`; or else one of `values`."""

    key: Name
    what: Name
    """Name of the value in messages."""
    unit: str = ""
    least: float = 0
    most: float = 0
    step: float | None = None
    values: tuple[int, ...] = ()

    def problems(self, path: str, value: float) -> Iterator[Problem]:
        """A problem with the nearest accepted value, if `value` (in the limit's unit) is not accepted."""
        nearest = self._nearest(value)
        if value != nearest:
            rule = f"{self.what} must be {self._accepted()} {self.unit}".rstrip()
            yield Problem(path, value, rule, f"Set {nearest:g}.", code="value-not-accepted")

    def _accepted(self) -> str:
        if self.values:
            return f"one of {', '.join(map(str, self.values))}"
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"{self.least:g} to {self.most:g}{steps}"

    def _nearest(self, value: float) -> float:
        if self.values:
            return min(self.values, key=lambda one: abs(one - value))
        inside = min(max(self.least, value), self.most)  # least for NaN
        return round(inside / self.step) * self.step if self.step else inside


def read_limits(path: Path) -> Mapping[str, Limit]:
    """The limits of a table by key. Raises CatalogError when the table is malformed."""
    return read_table(path, "limit", Limit, "key")
