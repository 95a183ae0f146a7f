"""Drawings of the architecture: parts in layers, and identities against stores (pure)."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from trainstack.dossier.html.figures import Placed, value
from trainstack.dossier.html.svg import Picture, number, width, wrapped

WIDE, NARROW = 880.0, 340.0
_GAP, _PAD = 8.0, 10.0
_NAME, _SMALL = 12.5, 11.0


@dataclass(frozen=True)
class _Grid:
    """Places of boxes in a band."""

    left: float
    columns: int
    box: float

    @staticmethod
    def of(wide: float) -> "_Grid":
        label = 150.0 if wide == WIDE else 0.0
        columns = 4 if wide == WIDE else 2
        room = wide - label - 2 * _PAD - (columns - 1) * _GAP
        return _Grid(label + _PAD, columns, room / columns)


def layers(architecture: Placed, wide: float) -> Markup:
    """Parts as boxes in bands, with what is public and what holds data."""
    drawing = Picture("Parts of the stack by layer; the tables below have the same", wide)
    y = _internet(drawing, architecture, 0.0)
    for layer in architecture.layers:
        y = _band(drawing, layer, y + _GAP)
    drawing.high = y
    return drawing.render("wide" if wide == WIDE else "narrow")


def _internet(drawing: Picture, architecture: Placed, y: float) -> float:
    """The band of the internet, with the ways in and out."""
    grid = _Grid.of(drawing.wide)
    rows = [*architecture.openings]
    text = drawing.wide - grid.left - _PAD - 26
    entries = []
    for one in rows:
        peers = ", ".join(value(one.peers)) or "no address"
        entry = f"{value(one.what)} of {value(one.part)}"
        inward = one.direction == "in"
        sentence = f"{entry}: open to {peers}" if inward else f"{entry}: to the internet"
        entries.append((inward, bool(one.open_to_all), wrapped(sentence, text, _NAME, 3)))
    head = 0.0 if drawing.wide == WIDE else 22.0
    high = head + 2 * _PAD + max(15.0, sum(len(lines) * 15.0 + 5 for _, _, lines in entries) - 5)
    drawing.box("internet", (0.0, y), (drawing.wide, high), 6)
    drawing.text((_PAD, y + 22), "Internet", "name")
    if drawing.wide == WIDE:
        drawing.text((_PAD, y + 38), "ways in and out", "soft small") if high > 44 else None
    at = y + head + _PAD + 12
    if not entries:
        drawing.text((grid.left, at), "No way in or out is among the resources.", "soft")
    for inward, open_to_all, lines in entries:
        css = "in" if inward and open_to_all else "some" if inward else "out"
        drawing.element("path", f"arrow {css}", d=_arrow(grid.left, at - 10, down=inward))
        drawing.lines((grid.left + 20, at), lines)
        at += len(lines) * 15 + 5
    return y + high


def _arrow(x: float, y: float, *, down: bool) -> str:
    head = f"M{x + 1:.1f} {y + 7:.1f}l5 5l5 -5" if down else f"M{x + 1:.1f} {y + 5:.1f}l5 -5l5 5"
    return f"M{x + 6:.1f} {y:.1f}v12{head}"


def _band(drawing: Picture, layer: Placed, y: float) -> float:
    grid = _Grid.of(drawing.wide)
    wide = drawing.wide == WIDE
    head = 0.0 if wide else 24.0
    cells = [_cell(part, grid) for part in layer.parts]
    rows = [cells[at : at + grid.columns] for at in range(0, len(cells), grid.columns)]
    heights = [max(high for _, _, high in row) for row in rows]
    title = wrapped(value(layer.title), 150.0 - 2 * _PAD, _NAME)
    high = max(
        head + 2 * _PAD + sum(heights) + _GAP * (len(rows) - 1),
        2 * _PAD + 15 * len(title) + 14 if wide else 0,
    )
    drawing.box("band", (0.0, y), (drawing.wide, high), 6)
    if wide:
        drawing.lines((_PAD, y + 22), title, "name")
        drawing.text((_PAD, y + 22 + 15 * len(title)), _resources(layer), "soft small")
    else:
        drawing.text((_PAD, y + 20), value(layer.title), "name")
        drawing.text((drawing.wide - _PAD, y + 20), _resources(layer), "soft small", "end")
    at = y + head + _PAD
    for row, box in zip(rows, heights, strict=True):
        for column, (part, lines, _) in enumerate(row):
            _box(drawing, part, lines, (grid.left + column * (grid.box + _GAP), at), (grid.box, box))
        at += box + _GAP
    return y + high


def _resources(row: Placed) -> Markup:
    plural = "resource" if row.resources == 1 else "resources"
    return number(row.resources, "count") + f" {plural}"


def _cell(part: Placed, grid: _Grid) -> tuple[Placed, list[str], float]:
    lines = wrapped(value(part.name), grid.box - 2 * _PAD, _NAME)
    marks = 19.0 if part.public or part.holds_data else 0.0
    return part, lines, 13.0 + 15 * len(lines) + 15 + marks


def _box(
    drawing: Picture, part: Placed, lines: list[str], corner: tuple[float, float], size: tuple[float, float]
) -> None:
    x, y = corner
    css = "part public" if part.public else "part data" if part.holds_data else "part"
    drawing.box(css, corner, size, 4)
    drawing.lines((x + _PAD, y + 18), lines, "name")
    at = y + 18 + 15 * len(lines)
    kind = wrapped(value(part.kind), size[0] - 2 * _PAD - 30, _SMALL, 1)[0]
    drawing.text((x + _PAD, at), kind, "soft small")
    drawing.text((x + size[0] - _PAD, at), number(part.resources, "count"), "soft small", "end")
    left = x + _PAD
    for name, wanted in (("public", part.public), ("data", part.holds_data)):
        if wanted:
            room = width(name, _SMALL) + 10
            drawing.box(f"pill {name}", (left, at + 7), (room, 16.0), 8)
            drawing.text((left + room / 2, at + 19), name, f"pill-text {name}", "middle")
            left += room + 6


def access(architecture: Placed, wide: float) -> Markup:
    """Identities by stores: squares for reading, writing, deleting."""
    stores, who = [*architecture.stores], [*architecture.identities]
    label = 250.0 if wide == WIDE else 112.0
    # Names of stores rise to the right of the last column.
    top, long = (134.0, 170.0) if wide == WIDE else (84.0, 96.0)
    step = min(74.0, (wide - label - long * 0.72) / max(1, len(stores)))
    drawing = Picture("Identities that a policy lets reach data; the table below has the same", wide)
    y = top
    for index, store in enumerate(stores):
        x = label + step * index + step / 2
        drawing.tilted((x, top - 8), wrapped(value(store.name), long, _SMALL, 1)[0], "small")
    for row in who:
        lines = wrapped(value(row.who), label - 8, _SMALL, 3)
        high = max(24.0, 13.0 * len(lines) + 8)
        drawing.line("rule", (0.0, y), (wide, y))
        drawing.lines((0.0, y + 15), lines, "small", 13)
        rights = {value(one.store): value(one.rights) for one in row.stores}
        for index, store in enumerate(stores):
            _squares(
                drawing, rights.get(value(store.name), []), (label + step * index + step / 2, y + 6), step
            )
        y += high
    drawing.line("rule", (0.0, y), (wide, y))
    drawing.high = y + 4
    return drawing.render("wide" if wide == WIDE else "narrow")


def _squares(drawing: Picture, rights: list[Any], at: tuple[float, float], step: float) -> None:
    side = min(12.0, (step - 8) / 3)
    for index, right in enumerate(("read", "write", "delete")):
        x = at[0] + (index - 1.5) * (side + 1)
        given = right in rights or "all" in rights
        drawing.box(f"right {right}" if given else "right none", (x, at[1]), (side, 12.0), 2)
