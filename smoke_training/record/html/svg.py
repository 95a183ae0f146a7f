"""Small plots as SVG text: scales, axes, marks (pure). Coordinates are CSS pixels of the view box."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from smoke_training.record.formatting import escaped, number

WIDTH = 760.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 30.0, 14.0, 48.0
MARKERS = ("circle", "square", "diamond", "triangle")  # besides `ring`, an open circle
DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 4", "12 4")
_PATHS = {"square": "m-4 -4h8v8h-8z", "diamond": "m0 -6l6 6l-6 6l-6 -6z", "triangle": "m0 -5l5 9h-10z"}

Label = Callable[[float], str]
Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`, optionally logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Pixel of a value; a value outside is drawn just beyond the edge."""
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


@dataclass
class LegendEntry:
    """One label in the legend: a line, a marker, an area."""

    line: tuple[str, str] | None = None
    marker: tuple[str, str] | None = None
    area: str | None = None


@dataclass
class Drawing:
    """SVG elements in drawing order, with the text that a screen reader gets.

    Marks with a `label` put themselves in the legend; `css` is l0 .. l5, bound or limit for lines.
    """

    description: str
    height: float
    parts: list[str] = field(default_factory=list)
    entries: dict[str, LegendEntry] = field(default_factory=dict)

    def span(self, below: float) -> Point:
        """Pixels of a vertical scale, lowest value first, that leaves room at the top, `below` its edge."""
        return self.height - BOTTOM, TOP + below

    def add(self, tag: str, css: str, text: str | None = None, **attributes: object) -> None:
        """One element; underscores in attribute names become hyphens."""
        rounded = {k: f"{v:.1f}" if isinstance(v, float) else v for k, v in attributes.items()}
        shown = "".join(f' {key.replace("_", "-")}="{escaped(value)}"' for key, value in rounded.items())
        style = f' class="{css}"' if css else ""
        end = "/>" if text is None else f">{escaped(text)}</{tag}>"
        self.parts.append(f"<{tag}{style}{shown}{end}")

    def text(self, at: Point, text: str, css: str = "", anchor: str = "start") -> None:
        """One line of text with its baseline at a point."""
        self.add("text", css, text, x=at[0], y=at[1], text_anchor=anchor)

    def line(self, points: Sequence[Point], css: str, dash: str = "", label: str = "") -> None:
        """A polyline through pixel positions."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add("polyline", css, points=joined, **({"stroke_dasharray": dash} if dash else {}))
        self._entry(label).line = css, dash

    def box(self, css: str, corner: Point, size: Point, opacity: float = 1.0, label: str = "") -> None:
        """A rectangle from its upper left corner."""
        (x, y), (width, height) = corner, size
        self.add("rect", css, x=x, y=y, width=width, height=height, fill_opacity=f"{opacity:.2f}")
        self._entry(label).area = css

    def bar(self, scale: Scale, span: Point, middle: float, css: str, label: str = "") -> None:
        """A horizontal bar over a span of values, 16 pixels high; with a gap to the next one."""
        left, right = scale(span[0]), scale(span[1])
        self.box(css, (left, middle - 8), (max(0.0, right - left - 1), 16.0), label=label)

    def marker(self, shape: str, at: Point, css: str, tip: str = "", label: str = "") -> None:
        """A data point; `tip` is shown on hover."""
        x, y = (f"{value:.1f}" for value in at)
        element = f'circle class="{css}" cx="{x}" cy="{y}" r="4"'
        if shape in _PATHS:
            element = f'path class="{css}" d="M{x} {y}{_PATHS[shape]}"'
        style = ' fill-opacity="0" stroke-width="2"' if shape == "ring" else ""
        described = f"<title>{escaped(tip)}</title>" if tip else ""
        self.parts.append(f"<{element}{style}>{described}</{element.split()[0]}>")
        self._entry(label).marker = shape, css

    def _entry(self, label: str) -> LegendEntry:
        return self.entries.setdefault(label, LegendEntry()) if label else LegendEntry()

    def _legend(self) -> list[str]:
        legend, at, row = Drawing("", 0.0), LEFT, TOP + 2
        for label, entry in self.entries.items():
            needed = 44 + 6.4 * len(label)
            if at + needed > WIDTH and at > LEFT:
                at, row = LEFT, row + 16
            if entry.area:
                legend.box(entry.area, (at + 4, row - 10), (13.0, 11.0))
            if entry.line:
                legend.line([(at, row - 4), (at + 22, row - 4)], *entry.line)
            if entry.marker:
                legend.marker(entry.marker[0], (at + 11, row - 4), entry.marker[1])
            legend.text((at + 28, row), label)
            at += needed
        return legend.parts

    def render(self, name: str, title: str) -> str:
        """The SVG element, legend and all; `name` prefixes its ids."""
        parts = "".join(self.parts + self._legend())
        return (
            f'<svg role="img" viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" '
            f'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escaped(title)}</title>'
            f'<desc id="{name}-d">{escaped(self.description)}</desc>{parts}</svg>'
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
    _value_axis(drawing, x, y, labels[0], shown[0])
    middle = (y.start + y.end) / 2
    turned = f"rotate(-90 16 {middle:.0f})"
    drawing.add("text", "", labels[1], x=16.0, y=middle, text_anchor="middle", transform=turned)


def rows(
    described: str, x: Scale, names: Sequence[str], label: str, shown: Label = number
) -> tuple[Drawing, Scale]:
    """A drawing with one row per name, 24 pixels each; the scale has the middle of row 0, 1, ...

    `label` is that of the value axis, with its unit. Above the rows the legend has room for two lines.
    """
    most, top = max(2, len(names)), TOP + 42
    y = Scale(most - 0.5, -0.5, top + 24.0 * most, top)
    drawing = Drawing(described, y.start + BOTTOM)
    _value_axis(drawing, x, y, label, shown)
    for index, name in enumerate(names):
        drawing.text((x.start - 8, y(index) + 4), name, "soft", "end")
    return drawing, y


def _value_axis(drawing: Drawing, x: Scale, y: Scale, label: str, shown: Label) -> None:
    for tick in x.ticks():
        drawing.line([(x(tick), y.start), (x(tick), y.end)], "grid")
        drawing.text((x(tick), y.start + 18), shown(tick), "soft", "middle")
    drawing.line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "axis")
    drawing.text(((x.start + x.end) / 2, y.start + 38), label, "", "middle")


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
