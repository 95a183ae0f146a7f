"""SVG elements with measured text: no label is wider than its place (pure). Coordinates are CSS pixels."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from trainstack.dossier.html.figures import Placed, figure

# Mean width of a character, as a share of the font size, of the widest of the fonts in the style sheet.
_CHARACTER = 0.62


def width(text: str, size: float) -> float:
    """An upper estimate of the width of a text."""
    return len(text) * size * _CHARACTER


def wrapped(text: str, room: float, size: float, most: int = 2) -> list[str]:
    """The text in lines that fit; what is beyond `most` lines is cut and marked."""
    letters = max(4, int(room / (size * _CHARACTER)))
    lines = textwrap.wrap(text.replace("/", "/\u200b"), letters, break_on_hyphens=True) or [""]
    lines = [one.replace("\u200b", "") for one in lines]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][: letters - 1]}\N{HORIZONTAL ELLIPSIS}"]
    return lines


@dataclass
class Picture:
    """Elements in drawing order, with the text that a screen reader gets."""

    title: str
    wide: float
    high: float = 0.0
    parts: list[str] = field(default_factory=list)

    def element(self, tag: str, css: str, **attributes: Any) -> None:
        """An empty element; underscores in attribute names become hyphens."""
        self.parts.append(f"<{tag}{_css(css)}{_attributes(attributes)}/>")

    def box(
        self, css: str, corner: tuple[float, float], size: tuple[float, float], radius: float = 0
    ) -> None:
        """A rectangle from its upper left corner."""
        (x, y), (w, h) = corner, size
        self.element("rect", css, x=x, y=y, width=max(w, 0.0), height=h, **({"rx": radius} if radius else {}))

    def line(self, css: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A straight line."""
        self.element("line", css, x1=start[0], y1=start[1], x2=end[0], y2=end[1])

    def text(self, at: tuple[float, float], content: object, css: str = "", anchor: str = "start") -> None:
        """One line of text with its baseline at a point; `content` is a text or markup of `number`."""
        place = _attributes({"x": at[0], "y": at[1], "text_anchor": anchor})
        self.parts.append(f"<text{_css(css)}{place}>{escape(content)}</text>")

    def tilted(self, at: tuple[float, float], content: str, css: str = "") -> None:
        """A text that rises to the right from a point."""
        place = f' transform="translate({at[0]:.1f} {at[1]:.1f}) rotate(-40)"'
        self.parts.append(f"<text{_css(css)}{place}>{escape(content)}</text>")

    def lines(
        self,
        at: tuple[float, float],
        rows: Sequence[str],
        css: str = "",
        step: float = 15,
        anchor: str = "start",
    ) -> None:
        """Lines of text below each other."""
        for index, row in enumerate(rows):
            self.text((at[0], at[1] + index * step), row, css, anchor)

    def render(self, css: str) -> Markup:
        """The SVG element."""
        size = f'viewBox="0 0 {self.wide:.0f} {self.high:.0f}"'
        head = f'<svg class="{css}" {size} role="img" aria-label="{escape(self.title)}">'
        return Markup(f"{head}{''.join(self.parts)}</svg>")  # noqa: S704 - all parts are escaped


def number(placed: Placed, form: str) -> Markup:
    """A number inside of a text of a drawing."""
    return figure(placed, form, "tspan")


def _css(css: str) -> str:
    return f' class="{css}"' if css else ""


def _attributes(given: dict[str, Any]) -> str:
    rounded = {key: f"{one:.1f}" if isinstance(one, float) else one for key, one in given.items()}
    return "".join(f' {key.replace("_", "-")}="{escape(one)}"' for key, one in rounded.items())
