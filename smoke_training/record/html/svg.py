"""Small plots as SVG text: scales, axes, marks (pure). Coordinates are CSS pixels of the view box."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from smoke_training.record.html.words import escaped, number

WIDTH = 760.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 30.0, 14.0, 48.0
MARKERS = ("circle", "square", "diamond", "triangle", "cross", "ring")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 4", "12 4")

Label = Callable[[float], str]
Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`, logarithmic if asked for."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Pixel of a value; what lies outside is drawn just beyond the edge."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, self.low / 10))
        share = (at - low) / (high - low)
        return self.start + (self.end - self.start) * min(1.02, max(-0.02, share))

    def ticks(self) -> list[float]:
        """Round values inside the scale."""
        return _powers(self.low, self.high) if self.log else _steps(self.low, self.high)


def linear(
    values: Iterable[float], start: float = LEFT, end: float = WIDTH - RIGHT, *, zero: bool = False
) -> Scale:
    """A linear scale over the values with some room; `zero` keeps zero on it, without room below."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return Scale(low if zero and low == 0 else low - room, high + room, start, end)


def logarithmic(
    values: Iterable[float], start: float = LEFT, end: float = WIDTH - RIGHT, base: float = 10.0
) -> Scale:
    """A logarithmic scale over the positive values, from a power of `base` to the next."""
    known = [value for value in values if value > 0 and math.isfinite(value)] or [1.0, base]
    low = base ** math.floor(math.log(min(known), base) + 1e-9)
    high = base ** math.ceil(math.log(max(known), base) - 1e-9)
    return Scale(low, high if high > low else low * base, start, end, log=True)


@dataclass(frozen=True)
class Entry:
    """One entry of a legend: a line (`css` l0 .. l5, bound, limit), an area, or a marker."""

    label: str
    css: str
    marker: str = ""
    dash: str = ""


@dataclass
class Drawing:
    """SVG elements in drawing order, with the text that a screen reader gets."""

    description: str
    height: float
    parts: list[str] = field(default_factory=list)

    def span(self, below: float) -> Point:
        """Pixels of a vertical scale, lowest value first, that leaves room at the top, `below` its edge."""
        return self.height - BOTTOM, TOP + below

    def add(self, tag: str, css: str, text: str | None = None, **attributes: object) -> None:
        """One element; underscores in attribute names become hyphens."""
        shown = "".join(
            f' {key.replace("_", "-")}="{escaped(_rounded(value))}"' for key, value in attributes.items()
        )
        style = f' class="{css}"' if css else ""
        end = "/>" if text is None else f">{escaped(text)}</{tag}>"
        self.parts.append(f"<{tag}{style}{shown}{end}")

    def text(self, at: Point, text: str, css: str = "", anchor: str = "start") -> None:
        """One line of text with its baseline at a point."""
        self.add("text", css, text, x=at[0], y=at[1], text_anchor=anchor)

    def line(self, points: Sequence[Point], css: str, dash: str = "") -> None:
        """A polyline through pixel positions."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add("polyline", css, points=joined, **({"stroke_dasharray": dash} if dash else {}))

    def box(self, css: str, corner: Point, size: Point, opacity: float = 1.0) -> None:
        """A rectangle from its upper left corner."""
        self.add(
            "rect",
            css,
            x=corner[0],
            y=corner[1],
            width=size[0],
            height=size[1],
            fill_opacity=f"{opacity:.2f}",
        )

    def bar(self, scale: Scale, span: Point, middle: float, css: str) -> None:
        """A horizontal bar over a span of values, 16 pixels high; a gap keeps it apart from the next one."""
        left, right = scale(span[0]), scale(span[1])
        self.box(css, (left, middle - 8), (max(0.0, right - left - 1), 16.0))

    def marker(self, shape: str, at: Point, css: str, tip: str = "") -> None:
        """A data point; `tip` is shown where the mouse rests on it."""
        x, y = (f"{value:.1f}" for value in at)
        path = {
            "square": "m-4 -4h8v8h-8z",
            "diamond": "m0 -6l6 6l-6 6l-6 -6z",
            "triangle": "m0 -5l5 9h-10z",
            "cross": "m-4 -4l8 8m0 -8l-8 8",
        }.get(shape)
        described = f"<title>{escaped(tip)}</title>" if tip else ""
        if path is not None:
            style = ' stroke-width="2"' if shape == "cross" else ""
            self.parts.append(f'<path class="{css}" d="M{x} {y}{path}"{style}>{described}</path>')
            return
        style = ' fill-opacity="0" stroke-width="2"' if shape == "ring" else ""
        self.parts.append(f'<circle class="{css}" cx="{x}" cy="{y}" r="4"{style}>{described}</circle>')

    def legend(self, entries: Sequence[Entry], y: float) -> None:
        """All entries in rows that wrap at the right edge, downwards from `y`."""
        at, row = LEFT, y
        for entry in entries:
            needed = 44 + 6.4 * len(entry.label)
            if at + needed > WIDTH and at > LEFT:
                at, row = LEFT, row + 16
            if entry.css[0] == "l" or entry.css == "bound":
                self.line([(at, row - 4), (at + 22, row - 4)], entry.css, entry.dash)
            elif not entry.marker:
                self.box(entry.css, (at + 4, row - 10), (13.0, 11.0))
            if entry.marker:
                css = f"s{entry.css[1]}" if entry.css[1:].isdigit() else entry.css
                self.marker(entry.marker, (at + 11, row - 4), css)
            self.text((at + 28, row), entry.label)
            at += needed

    def render(self, name: str, title: str) -> str:
        """The SVG element; `name` makes its ids."""
        return (
            f'<svg role="img" viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" '
            f'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escaped(title)}</title>'
            f'<desc id="{name}-d">{escaped(self.description)}</desc>{"".join(self.parts)}</svg>'
        )


def axes(
    drawing: Drawing,
    x: Scale,
    y: Scale,
    labels: tuple[str, str],
    shown: tuple[Label, Label] = (number, number),
) -> None:
    """Grid, tick labels and axis names; `labels` carry the units."""
    for tick in y.ticks():
        drawing.line([(x.start, y(tick)), (x.end, y(tick))], "grid")
        drawing.text((x.start - 6, y(tick) + 4), shown[1](tick), "soft", "end")
    for tick in x.ticks():
        drawing.line([(x(tick), y.start), (x(tick), y.start + 4)], "axis")
        drawing.text((x(tick), y.start + 18), shown[0](tick), "soft", "middle")
    drawing.line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "axis")
    drawing.text(((x.start + x.end) / 2, y.start + 38), labels[0], "", "middle")
    middle = (y.start + y.end) / 2
    turned = f"rotate(-90 16 {middle:.0f})"
    drawing.add("text", "", labels[1], x=16.0, y=middle, text_anchor="middle", transform=turned)


@dataclass(frozen=True)
class Rows:
    """The frame of a plot with one row per name; `y` maps a row's index to its middle."""

    x: Scale
    y: Scale
    names: Sequence[str]

    def draw(self, drawing: Drawing, label: str, shown: Label = number) -> None:
        """Grid, value axis below, one name per row; `label` carries the unit."""
        x, y = self.x, self.y
        for tick in x.ticks():
            drawing.line([(x(tick), y.start), (x(tick), y.end)], "grid")
            drawing.text((x(tick), y.end + 18), shown(tick), "soft", "middle")
        drawing.line([(x.start, y.start), (x.start, y.end), (x.end, y.end)], "axis")
        for index, name in enumerate(self.names):
            drawing.text((x.start - 8, y(index) + 4), name, "soft", "end")
        drawing.text(((x.start + x.end) / 2, y.end + 38), label, "", "middle")


def rows(x: Scale, names: Sequence[str], top: float) -> tuple[Rows, float]:
    """Rows below `top`, 24 pixels each, and the height of a drawing that holds them."""
    bottom = top + 24.0 * max(2, len(names))
    return Rows(x, Scale(-0.5, max(2, len(names)) - 0.5, top, bottom), names), bottom + BOTTOM


def _steps(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, or of two where the scale begins at one: at most nine of them."""
    base = 2.0 if low >= 1 and high / low >= 4 and math.log2(low).is_integer() else 10.0
    first, last = round(math.log(low, base)), round(math.log(high, base))
    stride = max(1, math.ceil((last - first) / 8))
    found = [base**power for power in range(first, last + 1, stride)]
    if base == 10.0 and last - first <= 1:
        found = sorted({f * base**p for p in range(first, last + 1) for f in (1, 2, 5)})
    return [value for value in found if low * 0.999 <= value <= high * 1.001]


def _rounded(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value
