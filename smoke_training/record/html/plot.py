"""Common parts of plots: drawing, caption, table of figures, or the reason why there is none (pure)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.reader import UNFIT
from smoke_training.record.html.svg import Drawing

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A picture with its caption, and its figures as a table."""

    drawing: Drawing
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """One figure of the page: `drawn`, or the `reason` why there is nothing to draw."""

    name: str
    title: str
    drawn: Drawn | None
    reason: str | None = None


Draw = Callable[[Result, Evidence], Drawn]


class NothingToDrawError(Exception):
    """The evidence of a plot is missing, with the reason."""


def made(name: str, title: str, draw: Draw, result: Result, found: Evidence) -> Plot:
    """The plot, or the reason in its place: an error does not affect the others."""
    try:
        return Plot(name, title, draw(result, found))
    except NothingToDrawError as why:
        reason = str(why)
    except UNFIT as error:
        reason = f"The evidence cannot be drawn: {type(error).__name__}: {error}."
    return Plot(name, title, None, reason)


def check_of(result: Result, name: str) -> Mapping[str, Any] | None:
    """A check of the result by its id."""
    return next((check for check in result["checks"] if check["id"] == name), None)


def why_missing(result: Result, name: str) -> str:
    """Return why a check has nothing to draw: its own message, or that this run lacks it."""
    check = check_of(result, name)
    if check is None:
        return f"This run did not measure it ({name} is not among its checks)."
    measured = check["measured"] is not None and check["measured"]["value"] is not None
    if measured or check["status"] in ("PASS", "FAIL", "INCONCLUSIVE"):
        return f"The samples do not contain it, although {name} was judged ({check['status']})."
    return f"{name} is {check['status']}: {check['message']}"
