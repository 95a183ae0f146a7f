"""The price of a preview: tables, limits and the exit code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.exit_codes import ExitCode
from trainstack.prices.model import PricedResource, PriceStanding
from trainstack.prices.pricing import PricedPlan

SCHEMA = "trainstack.project-preview/1"


@dataclass(frozen=True)
class PriceLimits:
    """Limits in US dollars per month, of the expected figure; None: no limit."""

    monthly: float | None = None
    increase: float | None = None
    allow_unpriced: bool = False
    """Ignore resources whose price is unknown; without it they make the result undetermined."""


@dataclass(frozen=True)
class PriceReport:
    """The prices before and after an `up`, and the verdict of the policies on the plan."""

    source: str
    before: PricedPlan
    after: PricedPlan
    policies: Mapping[str, int]
    """Outcomes of the policies by result."""
    limits: PriceLimits = PriceLimits()

    @property
    def increase(self) -> float:
        """Difference of the expected figures, in US dollars per month."""
        return self.after.usd[1] - self.before.usd[1]

    @property
    def exceeded(self) -> list[str]:
        """The limits that the known prices exceed alone."""
        found = []
        if self.limits.monthly is not None and self.after.usd[1] > self.limits.monthly:
            found.append(f"${self.after.usd[1]:,.2f} a month expected; --max-monthly {self.limits.monthly:g}")
        if self.limits.increase is not None and self.increase > self.limits.increase:
            found.append(f"${self.increase:,.2f} a month more; --max-increase {self.limits.increase:g}")
        return found

    @property
    def doubtful(self) -> list[PricedResource]:
        """Resources of unknown price because of which a limit may be exceeded.

        For an increase: those that the `up` creates, or whose unpriced parts it changes.
        """
        unknown = self.after.of(PriceStanding.UNKNOWN)
        if self.limits.allow_unpriced or (self.limits.monthly is None and self.limits.increase is None):
            return []
        if self.limits.monthly is not None:
            return unknown
        before = {one.urn: list(one.unpriced) for one in self.before.of(PriceStanding.UNKNOWN)}
        return [one for one in unknown if before.get(one.urn) != list(one.unpriced)]

    @property
    def code(self) -> ExitCode:
        """VIOLATIONS where a limit is exceeded, UNDETERMINED where that depends on unknown prices."""
        if self.exceeded:
            return ExitCode.VIOLATIONS
        return ExitCode.UNDETERMINED if self.doubtful else ExitCode.DONE

    def document(self) -> dict[str, Any]:
        """The report as JSON (docs/reference/schemas/projects/project-preview.schema.json)."""
        return {
            "source": self.source,
            "exit_code": int(self.code),
            "monthly_usd": _figures(self.after.usd),
            "before_usd": _figures(self.before.usd),
            "increase_usd": round(self.increase, 2),
            "exceeded": self.exceeded,
            "undetermined": [one.urn for one in self.doubtful],
            "counts": {one.value.replace(" ", "_"): len(self.after.of(one)) for one in PriceStanding},
            "resources": [_resource(one) for one in self.after.resources],
            "policies": dict(self.policies),
        }

    def lines(self) -> Iterator[str]:
        """Lines below the table: counts, names without a price, limits, policies."""
        counts = ", ".join(f"{len(self.after.of(one))} {one.value}" for one in PriceStanding)
        yield f"resources: {counts}"
        if unknown := self.after.of(PriceStanding.UNKNOWN):
            yield f"price not known, in no sum ({len(unknown)}):"
            yield from (f"  {one.name} ({one.type}): {_reasons(one)}" for one in unknown)
        if used := self.after.of(PriceStanding.BY_USAGE):
            yield f"by usage, in no sum ({len(used)}):"
            yield from (f"  {one.name} ({one.type}): {_reasons(one)}" for one in used)
        yield f"increase: ${self.increase:,.2f} a month expected"
        judged = ", ".join(f"{count} {name}" for name, count in sorted(self.policies.items()))
        yield f"policies: {judged or 'no rule applies'}"
        yield from (f"over the limit: {one}" for one in self.exceeded)
        if self.doubtful and not self.exceeded:
            names = ", ".join(one.name for one in self.doubtful)
            yield f"exit code 4: the price may be above the limit, as it is not known of {names}"
            yield "  --allow-unpriced ignores what is not known"

    def rows(self) -> Sequence[tuple[str, ...]]:
        """Rows of the table: each part with a price, and the sums."""
        made = [
            (
                one.name,
                part.name,
                *map(_usd, (part.minimum, part.expected, part.maximum)),
                str(part.date or ""),
            )
            for one in self.after.resources
            for part in one.parts
        ]
        return [*made, ("total of known", "", *map(_usd, self.after.usd), "")]


HEAD = ("resource", "part", "min $/month", "expected", "max", "price of")


def _reasons(one: PricedResource) -> str:
    return "; ".join(f"{part.name}: {part.reason}" for part in one.unpriced)


def _usd(figure: float | None) -> str:
    return "unknown" if figure is None else f"{figure:,.2f}"


def _figures(usd: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("minimum", "expected", "maximum"), (round(one, 2) for one in usd), strict=True))


def _resource(one: PricedResource) -> dict[str, Any]:
    return {
        "urn": one.urn,
        "type": one.type,
        "name": one.name,
        "region": one.region,
        "standing": one.standing.value.replace(" ", "_"),
        "monthly_usd": None if one.usd is None else _figures(one.usd),
        "parts": [
            {"name": part.name, "expected_usd": round(part.expected or 0.0, 2), "date": part.date}
            for part in one.parts
        ],
        "unpriced": [{"name": part.name, "reason": part.reason} for part in one.unpriced],
    }
