"""Charts of money, validation, policies and deploy time (pure)."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from trainstack.dossier.html.figures import Placed, text, value
from trainstack.dossier.html.structure import NARROW, WIDE
from trainstack.dossier.html.svg import Picture, number, width, wrapped

_BAR = 18.0
_MOST = 16
"""Rows of a chart; the table below has all."""
_PHASES = ("compute", "exposed", "data", "checkpoint", "other")


def _css(wide: float) -> str:
    return "wide" if wide == WIDE else "narrow"


def _legend(drawing: Picture, names: Sequence[tuple[str, str]], y: float) -> float:
    """Coloured squares with names, in as many lines as needed; the new bottom."""
    x = 0.0
    for css, name in names:
        room = 20 + width(name, 11) + 14
        if x and x + room > drawing.wide:
            x, y = 0.0, y + 17
        drawing.box(css, (x, y), (11.0, 11.0), 2)
        drawing.text((x + 16, y + 10), name, "small")
        x += room
    return y + 17


def cost(money: Placed, wide: float) -> Markup:
    """Least, expected and most cost by tier, with the budget."""
    drawing = Picture("Cost per month by tier against the budget", wide)
    left, right = (86.0, 74.0) if wide == WIDE else (70.0, 62.0)
    most = max(value(money.maximum_usd), value(money.budget_usd), 1.0)
    room = wide - left - right
    y = 22.0
    for name in ("minimum", "expected", "maximum"):
        drawing.text((0.0, y + 14), name, "name" if name == "expected" else "")
        x = left
        for index, tier in enumerate(money.tiers):
            part = value(tier[f"{name}_usd"]) / most * room
            drawing.box(f"fill s{index % 6}", (x, y), (max(part - 1, 0.0), _BAR + 4))
            x += part
        drawing.text(
            (x + 6, y + 15), number(money[f"{name}_usd"], "usd"), "name" if name == "expected" else ""
        )
        y += 34
    at = left + value(money.budget_usd) / most * room
    drawing.line("budget", (at, 14.0), (at, y - 6))
    label = Markup("budget ") + number(money.budget_usd, "usd")
    middle = min(max(at, 70.0), wide - 70.0)
    drawing.text((middle, 10.0), label, "small", "middle")
    drawing.high = _legend(
        drawing, [(f"fill s{i % 6}", value(tier.title)) for i, tier in enumerate(money.tiers)], y + 4
    )
    return drawing.render(_css(wide))


def budgets(fleet: Placed, wide: float) -> Markup:
    """Expected cost of each stack, with its budget."""
    rows = [one for one in fleet.stacks if value(one.expected_usd) is not None]
    drawing = Picture("Expected cost and budget by stack", wide)
    left, right = (230.0, 90.0) if wide == WIDE else (0.0, 70.0)
    most = max([1.0, *(max(value(one.expected_usd), value(one.budget_usd)) for one in rows)])
    room = wide - left - right
    y = 4.0
    for one in rows:
        name = (
            value(one.stack)
            if value(one.stack) == value(one.file)
            else f"{value(one.stack)} ({value(one.file)})"
        )
        if wide == NARROW:
            drawing.text((0.0, y + 12), wrapped(name, wide, 12, 1)[0])
            y += 17
        else:
            drawing.text((left - 10, y + 13), wrapped(name, left - 14, 12, 1)[0], "", "end")
        cost_, budget = value(one.expected_usd) / most * room, value(one.budget_usd) / most * room
        css = "fill violated" if cost_ > budget else "fill s0"
        drawing.box(css, (left, y), (cost_, _BAR), 2)
        drawing.line("budget", (left + budget, y - 3), (left + budget, y + _BAR + 3))
        fits = cost_ > budget or budget - cost_ > width(text(one.expected_usd, "usd"), 11) + 14
        after = cost_ if fits else budget
        drawing.text((left + after + 8, y + 13), number(one.expected_usd, "usd"), "small")
        y += 29
    names = [("fill s0", "within the budget"), ("fill violated", "above the budget")]
    drawing.high = _legend(drawing, names, y + 4)
    return drawing.render(_css(wide))


def runs(gpus: Placed, wide: float) -> Markup:
    """Cost of one run by machine, the cheapest first."""
    rows = [*gpus.runs][:_MOST]
    drawing = Picture("Cost of the run by machine", wide)
    left, right = (250.0, 150.0) if wide == WIDE else (0.0, 0.0)
    most = max(value(one.usd) for one in rows)
    y = 4.0
    for one in rows:
        name = f"{value(one.gpu)} in {value(one.machine)}"
        css = "fill own" if one.in_stack else "fill other"
        figures = number(one.usd, "usd") + Markup(" in ") + number(one.hours, "hours")
        if wide == NARROW:
            drawing.text((0.0, y + 12), wrapped(name, wide - 120, 12, 1)[0], "name" if one.in_stack else "")
            drawing.text((wide, y + 12), figures, "small", "end")
            drawing.box(css, (0.0, y + 18), (value(one.usd) / most * wide, 10.0), 2)
            y += 38
        else:
            drawing.text(
                (left - 10, y + 13), wrapped(name, left - 14, 12, 1)[0], "name" if one.in_stack else "", "end"
            )
            long = value(one.usd) / most * (wide - left - right)
            drawing.box(css, (left, y), (long, _BAR), 2)
            drawing.text((left + long + 8, y + 13), figures, "small")
            y += 27
    drawing.high = _legend(
        drawing, [("fill own", "GPU model of this stack"), ("fill other", "other GPU models")], y + 6
    )
    return drawing.render(_css(wide))


def bullet(check: Placed, title: str, wide: float, *, low: float, high: float, form: str) -> Markup:
    """A measured value with its interval against a limit."""
    drawing = Picture(f"{title}: measured value and limit", wide, 46.0)

    def x(given: float) -> float:
        return 4 + (min(max(given, low), high) - low) / (high - low) * (wide - 8)

    measured, limit, ci = value(check.value), value(check.limit), value(check.ci)
    drawing.box("track", (4.0, 16.0), (wide - 8, 8.0), 4)
    if limit is not None:
        drawing.line("limit", (x(limit), 8.0), (x(limit), 32.0))
        anchor = "end" if x(limit) > wide / 2 else "start"
        drawing.text((x(limit), 43.0), Markup("limit ") + number(check.limit, form), "small soft", anchor)
    if ci and None not in ci:
        drawing.line("interval", (x(ci[0]), 20.0), (x(ci[1]), 20.0))
    drawing.element("circle", "dot", cx=x(measured), cy=20.0, r=6)
    return drawing.render("bullet")


def bandwidth(rows: Placed, wide: float) -> Markup:
    """Bus bandwidth by message size, on logarithmic scales, with the references that are known."""
    shown = [one for one in rows if value(one.sweep)]
    points = [(p["size_bytes"], p["gb_s"]) for one in shown for p in value(one.sweep) if p["gb_s"]]
    references = [r for one in shown for r in value(one.references)]
    tops = [gb for _, gb in points] + [r["gb_s"] for r in references]
    left, right, top, high = 62.0, 12.0, 10.0, 190.0
    low_y, high_y = math.floor(math.log10(min(tops))), math.ceil(math.log10(max(tops)))
    low_x, high_x = math.log2(min(s for s, _ in points)), math.log2(max(s for s, _ in points))
    drawing = Picture("Bus bandwidth by message size", wide)

    def at(size: float, gb: float) -> tuple[float, float]:
        share_x = (math.log2(size) - low_x) / ((high_x - low_x) or 1)
        share_y = (math.log10(gb) - low_y) / ((high_y - low_y) or 1)
        return left + share_x * (wide - left - right), top + (1 - share_y) * high

    for power in range(low_y, high_y + 1):
        _, y = at(2**low_x, 10.0**power)
        drawing.line("rule", (left, y), (wide - right, y))
        drawing.text((left - 6, y + 4), f"1e{power}" if abs(power) > 3 else f"{10.0**power:g}", "tick", "end")
    longest = max(shown, key=lambda one: len(one.sweep))
    sizes = [*longest.sweep]
    every = max(1, math.ceil(len(sizes) * 56 / (wide - left)))
    for one in sizes[::every]:
        x, _ = at(value(one.size_bytes), 10.0**low_y)
        anchor = "end" if x > wide - 40 else "middle"
        drawing.text((x, top + high + 16), number(one.size_bytes, "size"), "small soft", anchor)
    for index, one in enumerate(shown):
        line = [at(p["size_bytes"], p["gb_s"]) for p in value(one.sweep) if p["gb_s"]]
        drawing.element(
            "polyline", f"curve l{index % 6}", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        )
        for x, y in line:
            drawing.element("circle", f"fill s{index % 6}", cx=x, cy=y, r=2.5)
        for reference in value(one.references):
            _, y = at(2**low_x, reference["gb_s"])
            drawing.line("limit", (left, y), (wide - right, y))
    names = [(f"fill s{index % 6}", value(one.collective)) for index, one in enumerate(shown)]
    drawing.text((left, top + high + 34), "message size; vertical: GB/s of the bus", "small soft")
    drawing.high = _legend(drawing, names, top + high + 44)
    return drawing.render(_css(wide))


def steps(rows: Placed, wide: float) -> Markup:
    """Time of a step by rank and phase, the slowest rank first."""
    ranks = sorted(rows, key=lambda one: -value(one.step_s))[:_MOST]
    drawing = Picture("Time of a training step by rank", wide)
    left, right = 66.0, 82.0
    most = max(value(one.step_s) for one in ranks) or 1.0
    y = 2.0
    for one in ranks:
        drawing.text((0.0, y + 13), Markup("rank ") + number(one["rank"], "count"))
        x = left
        for index, phase in enumerate(_PHASES):
            part = value(one[f"{phase}_s"]) / most * (wide - left - right)
            drawing.box(f"fill s{index}", (x, y), (max(part - 0.7, 0.0), _BAR))
            x += part
        drawing.text((x + 6, y + 13), number(one.step_s, "ms"), "small")
        y += 26
    names = {
        "exposed": "waiting for the network",
        "compute": "compute",
        "data": "data",
        "checkpoint": "checkpoint",
        "other": "other",
    }
    drawing.high = _legend(drawing, [(f"fill s{i}", names[one]) for i, one in enumerate(_PHASES)], y + 6)
    return drawing.render(_css(wide))


def frameworks(policy: Placed, wide: float) -> Markup:
    """Controls of each framework by the worst result of their rules."""
    states = ("passed", "waived", "undetermined", "violated", "not_applicable")
    rows = [one for one in policy.frameworks if one.controls]
    drawing = Picture("Controls by framework and result", wide)
    left = 335.0 if wide == WIDE else 0.0
    y = 2.0
    for one in rows:
        if wide == NARROW:
            drawing.text((0.0, y + 12), wrapped(value(one.framework), wide, 12, 1)[0])
            y += 17
        else:
            drawing.text((0.0, y + 13), wrapped(value(one.framework), left - 10, 12, 1)[0])
        x, room = left, wide - left
        for state in states:
            share = value(one[state]) / value(one.controls) * room
            drawing.box(f"fill {state}", (x, y), (max(share - 1, 0.0), _BAR))
            if share > 24:
                drawing.text((x + share / 2, y + 13), number(one[state], "count"), f"on {state}", "middle")
            x += share
        y += 26
    names = [(f"fill {state}", state.replace("_", " ")) for state in states]
    drawing.high = _legend(drawing, names, y + 6)
    return drawing.render(_css(wide))


def path(deploy: Placed, wide: float) -> Markup:
    """Steps of the critical path, one after the other."""
    rows = [*deploy.path][:_MOST]
    drawing = Picture("Critical path of a deploy", wide)
    left, right = (310.0, 70.0) if wide == WIDE else (0.0, 56.0)
    total = sum(value(one.seconds) for one in rows) or 1.0
    x, y = left, 2.0
    for one in rows:
        name = value(one.name)
        long = value(one.seconds) / total * (wide - left - right)
        if wide == NARROW:
            drawing.text((0.0, y + 12), wrapped(name, wide, 12, 1)[0], "small")
            y += 16
        else:
            drawing.text((left - 10, y + 13), wrapped(name, left - 14, 12, 1)[0], "small", "end")
        drawing.box("fill s0", (x, y), (max(long, 2.0), _BAR), 2)
        after = x + long + 6
        label = text(one.seconds, "minutes")
        fits = after + width(label, 12) <= wide
        drawing.text(
            (after if fits else wide, y + 13),
            number(one.seconds, "minutes"),
            "small",
            "start" if fits else "end",
        )
        x, y = x + long, y + 26
    drawing.high = y + 2
    return drawing.render(_css(wide))
