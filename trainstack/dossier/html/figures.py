"""Values of a document with their places in it, so that a number of the page names that of the document."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

_DASH = "\N{EN DASH}"


class Placed:
    """A value of the document and its JSON pointer (RFC 6901); members are reached as in a template."""

    __slots__ = ("_pointer", "_value")

    def __init__(self, value: Any, pointer: str = "") -> None:
        self._value, self._pointer = value, pointer

    def __getitem__(self, key: Any) -> "Placed":
        step = str(key).replace("~", "~0").replace("/", "~1")
        return Placed(self._value[key], f"{self._pointer}/{step}")

    def __getattr__(self, key: str) -> "Placed":
        if key.startswith("__"):
            raise AttributeError(key)
        return self[key]

    def __iter__(self) -> Iterator["Placed"]:
        keys = self._value if isinstance(self._value, Mapping) else range(len(self._value))
        return (self[key] for key in keys)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (value(other) if isinstance(other, Placed) else other))

    def __lt__(self, other: "Placed") -> bool:
        return bool(self._value < value(other))

    def __gt__(self, other: "Placed") -> bool:
        return bool(self._value > value(other))

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        if isinstance(self._value, bool | int | float):
            raise TypeError(f"{self._pointer} is a number: show it with a format")
        return str(self._value)

    def __html__(self) -> str:
        return str(escape(str(self)))


def value(placed: Any) -> Any:
    """The plain value."""
    return placed._value if isinstance(placed, Placed) else placed


def pointer(placed: Placed) -> str:
    """The JSON pointer."""
    return placed._pointer


def _usd(amount: float) -> str:
    return f"${amount:,.2f}" if abs(amount) < 10 and amount else f"${amount:,.0f}"


def _rate(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _size(count: float) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count:g} B"


def _large(amount: float) -> str:
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if amount >= factor:
            return f"{amount / factor:g}{unit}"
    return f"{amount:g}"


FORMATS: Mapping[str, Callable[[float], str]] = {
    "count": lambda given: f"{given:,.0f}",
    "gb": lambda given: f"{given:,.1f} GB",
    "gb_s": lambda given: f"{_rate(given)} GB/s",
    "hours": lambda given: f"{given:,.1f} h" if given < 100 else f"{given:,.0f} h",
    "large": _large,
    "minutes": _minutes,
    "ms": lambda given: f"{given * 1000:,.1f} ms",
    "percent": lambda given: f"{given:.0%}",
    "ratio": lambda given: f"{given:.2f}",
    "rate": lambda given: f"${given:g}",
    "seconds": lambda given: f"{given:,.1f} s",
    "size": _size,
    "times": lambda given: f"{given:.2f}\N{MULTIPLICATION SIGN}",
    "usd": _usd,
}
"""Formats of numbers by name."""


def text(placed: Placed, form: str) -> str:
    """A number in a format; a dash for null."""
    given = value(placed)
    if isinstance(given, list):
        return FORMATS[form](len(given))
    return _DASH if given is None or not math.isfinite(given) else FORMATS[form](given)


def figure(placed: Placed, form: str, tag: str = "data") -> Markup:
    """A number as an element that names its place in the document; of a list, the number of its items."""
    given = value(placed)
    raw = len(given) if isinstance(given, list) else given
    plain = f' value="{escape(raw)}"' if tag == "data" else ""
    mark = f'<{tag}{plain} data-at="{escape(pointer(placed))}" data-as="{form}">'
    return Markup(f"{mark}{escape(text(placed, form))}</{tag}>")  # noqa: S704 - all parts are escaped
