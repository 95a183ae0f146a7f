"""The duration of a real deployment: durations of public logs over the engine's own graph."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from infra.catalog.durations import Durations
from infra.catalog.gcp.deploying import IAM_PAUSE_S
from infra.catalog.rows import Duration
from trainstack.forecast.critical_path import CriticalPath, Step, longest

Figure = Literal["seconds_min", "seconds_expected", "seconds_max"]


@dataclass(frozen=True)
class Forecast:
    """Seconds from the first create to the last; `unknown` are the kinds of resources that count as 0.

    Unknown kinds add to the figures.
    """

    shortest: float
    expected: CriticalPath
    longest: float
    unknown: tuple[str, ...]

    @property
    def line(self) -> str:
        """The forecast as text."""
        low, middle, high = (round(s / 60) for s in (self.shortest, self.expected.seconds, self.longest))
        more = "; parts without logs add to it" if self.unknown else ""
        return f"about {middle} min ({low} to {high}) to create in the real cloud, by public logs{more}"

    @property
    def path(self) -> str:
        """The critical path as text, without steps of 0 seconds."""
        steps = [step for step in self.expected.steps if step.seconds]
        return " > ".join(f"{step.key.rsplit('::', 1)[-1]} {_duration(step.seconds)}" for step in steps)


def forecast(resources: Iterable[Mapping[str, Any]], durations: Durations) -> Forecast:
    """The forecast for the `resources` of an engine's state, all to be created; `durations` by type."""
    rows = [one for one in resources if not one.get("delete")]
    created = [one for one in rows if one.get("custom") and not str(one["type"]).startswith("pulumi:")]
    paths = {}
    figures: tuple[Figure, ...] = ("seconds_min", "seconds_expected", "seconds_max")
    for figure in figures:
        paths[figure] = longest(step for one in rows for step in _steps(one, durations, figure))
    unknown = {_kind(one, durations) for one in created if _duration_of(one, durations) is None}
    return Forecast(
        paths["seconds_min"].seconds,
        paths["seconds_expected"],
        paths["seconds_max"].seconds,
        tuple(sorted(unknown)),
    )


def _duration_of(resource: Mapping[str, Any], durations: Durations) -> Duration | None:
    rows = durations.get(resource["type"], ())
    return next((row for row in rows if row.fits(resource.get("inputs", {}))), None)


def _kind(resource: Mapping[str, Any], durations: Durations) -> str:
    """The type, with the inputs by which rows of durations distinguish its resources."""
    inputs = resource.get("inputs", {})
    inputs_of_rows = {name for row in durations.get(resource["type"], ()) for name in row.where}
    return " ".join([resource["type"], *(str(inputs.get(name)) for name in sorted(inputs_of_rows))])


def _steps(resource: Mapping[str, Any], durations: Durations, figure: Figure) -> Iterator[Step]:
    after = [*resource.get("dependencies", ()), resource.get("parent")]
    provider = str(resource.get("provider") or "")
    after.append(provider.rpartition("::")[0])  # "<urn>::<id>"
    # Hooks before a creation are pauses for IAM alone, from the time when what IAM has to apply is known (ADR
    # 67): the member of a grant, else all that the resource depends on.
    if "BeforeCreate" in (resource.get("resourceHooks") or {}):
        pause = f"{resource['urn']} (pause for IAM)"
        of_member = (resource.get("propertyDependencies") or {}).get("member") or ()
        known = of_member if "member" in resource.get("inputs", {}) else resource.get("dependencies", ())
        yield Step(pause, IAM_PAUSE_S, tuple(known))
        after.append(pause)
    row = _duration_of(resource, durations)
    seconds = float(getattr(row, figure)) if row else 0.0
    yield Step(resource["urn"], seconds, tuple(one for one in after if one))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
