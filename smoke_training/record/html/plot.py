"""What every plot has: drawing, caption, its figures as a table, or the reason why there is none (pure)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smoke_training.evidence import Evidence

Result = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One figure. `svg` is None with a `reason` where there was nothing to draw."""

    name: str
    title: str
    svg: str | None
    caption: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    reason: str | None = None


Draw = Callable[[Result, Evidence], Plot]


class NothingToDrawError(Exception):
    """The evidence of a plot is missing; the text says why."""


def made(name: str, title: str, draw: Draw, result: Result, found: Evidence) -> Plot:
    """The plot, or the reason in its place: one that cannot be drawn costs no other."""
    try:
        return draw(result, found)
    except NothingToDrawError as why:
        reason = str(why)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        reason = f"The evidence cannot be drawn: {type(error).__name__}: {error}."
    return Plot(name=name, title=title, svg=None, caption="", reason=reason)


def check_of(result: Result, name: str) -> Mapping[str, Any] | None:
    """A check of the result by its id."""
    return next((check for check in result["checks"] if check["id"] == name), None)


def why_missing(result: Result, name: str) -> str:
    """Why a check has nothing to draw: its own words, or that this run does not have it."""
    check = check_of(result, name)
    if check is None:
        return f"This run did not measure it ({name} is not among its checks)."
    if check["status"] in ("PASS", "FAIL", "INCONCLUSIVE"):
        return f"The samples at hand do not hold it, although {name} was judged ({check['status']})."
    return f"{name} is {check['status']}: {check['message']}"


def detail(result: Result, name: str) -> Mapping[str, Any]:
    """The details of a check's measurement; NothingToDrawError without one."""
    check = check_of(result, name)
    if check is None or check["measured"] is None:
        raise NothingToDrawError(why_missing(result, name))
    found: Mapping[str, Any] = check["measured"]["detail"]
    return found
