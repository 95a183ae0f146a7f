"""How long a real deployment would take: typical durations of the catalog over the engine's own graph."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from infra.catalog.aws.model import Duration
from infra.critical_path import CriticalPath, Step, longest

Figure = Literal["seconds_min", "seconds_expected", "seconds_max"]


@dataclass(frozen=True)
class Forecast:
    """Seconds from the first create to the last; `unknown` are the types that count as 0."""

    shortest: float
    expected: CriticalPath
    longest: float
    unknown: tuple[str, ...]

    @property
    def line(self) -> str:
        """The forecast in words."""
        low, middle, high = (round(s / 60) for s in (self.shortest, self.expected.seconds, self.longest))
        return f"about {middle} min ({low} to {high}) to create in the real cloud, by typical durations"

    @property
    def path(self) -> str:
        """The critical path in words; what counts 0 is left out."""
        steps = [step for step in self.expected.steps if step.seconds]
        return " > ".join(f"{step.key.rsplit('::', 1)[-1]} {_duration(step.seconds)}" for step in steps)


def forecast(resources: Iterable[Mapping[str, Any]], durations: Mapping[str, Duration]) -> Forecast:
    """The forecast for the `resources` of an engine's state, all to be created."""
    rows = [one for one in resources if not one.get("delete")]
    types = {str(one["type"]) for one in rows if one.get("custom") and not _is_provider(one)}
    paths = {}
    figures: tuple[Figure, ...] = ("seconds_min", "seconds_expected", "seconds_max")
    for figure in figures:
        paths[figure] = longest(_step(one, durations, figure) for one in rows)
    unknown = tuple(sorted(types - set(durations)))
    return Forecast(
        paths["seconds_min"].seconds, paths["seconds_expected"], paths["seconds_max"].seconds, unknown
    )


def _step(resource: Mapping[str, Any], durations: Mapping[str, Duration], figure: Figure) -> Step:
    after = [*resource.get("dependencies", ()), resource.get("parent")]
    provider = str(resource.get("provider") or "")
    after.append(provider.rpartition("::")[0])  # "<urn>::<id>"
    row = durations.get(resource["type"])
    return Step(
        resource["urn"], float(getattr(row, figure)) if row else 0.0, tuple(one for one in after if one)
    )


def _is_provider(resource: Mapping[str, Any]) -> bool:
    return str(resource["type"]).startswith("pulumi:")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
