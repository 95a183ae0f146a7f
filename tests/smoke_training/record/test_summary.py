import random
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.evidence import Evidence
from smoke_training.record import accepted, formatting
from smoke_training.record.html import page, style, svg
from smoke_training.record.html.plot import Plot
from smoke_training.statistics import baseline
from tests.smoke_training import results
from tests.smoke_training.samples import lines, parsed

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Sees that every element is closed where it must be, and gathers what a page could fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.named: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.stack.append(tag)
        for key, value in attrs:
            if key in ("src", "href", "action", "data", "xlink:href", "srcset"):
                self.fetched.append(str(value))
            if key == "id":
                self.ids.append(str(value))
            if key == "aria-labelledby":
                self.named += str(value).split()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.stack == []
    return reader


def rich() -> list[dict[str, Any]]:
    """Evidence that every plot has something to draw from."""
    dice = random.Random(3)
    cells = [
        {"sender": a, "receiver": b,
         "gbit_s": [0.47 if {a, b} == {1, 3} else 0.95 * dice.uniform(0.99, 1)] * 5,
         "starved": None, "segments": None, "retransmitted": None, "spurious": None, "sent_bytes": None,
         "received_bytes": None}
        for a in range(4) for b in range(4) if a != b
    ]  # fmt: skip
    return [
        *lines(slowdown=1.5),
        {"kind": "tournament", "phase": "pairs", "nodes": [0, 1, 2, 3], "interface": None, "backend": "gloo",
         "streams": 1, "message_bytes": 1 << 20, "seconds": 1.0, "counter": "tcp", "cells": cells},
        {"kind": "storage", "name": "scratch", "path": "/x", "nodes": [0, 1], "write_bytes": 1 << 22,
         "read_bytes": 1 << 22, "write": [[0.02] * 9, [0.03] * 9], "write_queue": None,
         "first_write_mb_s": [100.0, 90.0], "read": [[0.004] * 9, [0.005] * 9], "read_queue": None,
         "resident_share": [0.0, 0.0], "open": [[0.001]] * 2},
        {"kind": "system", "node": 0, "names": ["cpu_utilization_percentage"], "at_ms": [1000, 3000, 5000],
         "values": [[40.0], [60.5], [None]], "gpu_reason": "none"},
    ]  # fmt: skip


def rendered(items: list[dict[str, Any]], **changes: Any) -> str:
    return page.render(results.result(items, **changes), parsed(items))


def test_the_page_stands_alone() -> None:
    text = rendered(rich())
    reader = read(text)
    assert "script" not in reader.tags
    assert "iframe" not in reader.tags
    assert reader.fetched == []
    assert "@import" not in text
    assert "url(" not in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert text == rendered(rich())  # the same result gives the same page


def test_every_plot_is_drawn_named_and_described() -> None:
    text = rendered(rich())
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == len(page.PLOTS)
    assert "Not drawn" not in text
    reader = read(text)
    assert set(reader.named) <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))
    for drawing in drawings:
        root = ET.fromstring(drawing)
        assert root.get("role") == "img"
        assert (root[0].tag, root[1].tag) == ("title", "desc")
        assert root[0].text
        assert root[1].text
        inside(root)


def svg_of(plot: Plot) -> str:
    assert plot.drawn is not None
    return plot.drawn.drawing.render(plot.name, plot.title)


def test_the_culprit_and_the_pictures_come_before_the_table_and_what_failed_comes_first() -> None:
    text = rendered(rich())
    places = [text.index(part) for part in ("<h1>", "<h2>Culprits</h2>", "<svg", "<h2>Checks</h2>")]
    assert places == sorted(places)
    assert text.index("<strong>rank 1</strong>") < places[2]
    assert re.findall(r'<figure id="(\w+)"', text)[0] == "straggler", "the plot of what failed"
    listed = re.findall(r'<tr><td><strong class="(\w+)">', text[places[3] :])
    order = ["FAIL", "ERROR", "INCONCLUSIVE", "PASS", "SKIPPED"]
    assert listed == sorted(listed, key=order.index) and listed[0] == "FAIL"


def test_a_run_without_a_failure_accuses_no_one() -> None:
    assert "Culprits" not in page.render(results.passed(1.0), Evidence())


def inside(root: ET.Element) -> None:
    """Nothing is drawn outside the view box."""
    _, _, width, height = (float(part) for part in str(root.get("viewBox")).split())
    for element in root.iter("text"):
        assert 0 <= float(str(element.get("x"))) <= width, element.text
        assert 0 <= float(str(element.get("y"))) <= height, element.text
    for element in root.iter("polyline"):
        for point in str(element.get("points")).split():
            x, y = (float(part) for part in point.split(","))
            assert -1 <= x <= width + 1
            assert -1 <= y <= height + 1


@pytest.mark.parametrize(
    ("name", "words_"),
    [
        ("busbw", ["GB/s", "1 KiB", "all_to_all", "message size"]),
        ("decomposition", ["rank 1", "exposed communication", "ms"]),
        ("straggler", ["rank 1", "indifference zone 1.05 .. 1.15", "accused rank"]),
        ("links", ["node 3", "0.47", "Gb/s"]),
        ("parity", ["optimizer step", "many ranks"]),
        ("storage", ["MB/s", "scratch node 1 write"]),
        ("nodes", ["busy, %", "node 0 CPU"]),
    ],
)
def test_each_plot_shows_its_units_and_names(name: str, words_: list[str]) -> None:
    items = rich()
    drawn = {plot.name: plot for plot in page.plots(results.result(items), parsed(items))}
    plot = drawn[name]
    assert plot.drawn is not None, plot.reason
    for word in words_:
        assert word in svg_of(plot), word
    assert plot.drawn.rows


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_fills_no_line(tmp_path: Path) -> None:
    """An open polyline is filled black by default, which a look at the source does not show."""
    lines_ = "[...document.querySelectorAll('svg polyline')]"
    result = f"document.title = {lines_}.map(line => getComputedStyle(line).fill).join()"
    path = tmp_path / "page.html"
    path.write_text(rendered(rich()).replace("</body>", f"<script>{result}</script></body>"))
    words_ = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/home"]
    shown = subprocess.run(
        [*words_, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    fills = re.search("<title>(.*?)</title>", shown)
    assert fills is not None
    assert len(fills[1].split(",")) > 20
    assert set(fills[1].split(",")) == {"none"}


def test_many_ranks_and_nodes_stay_inside_the_page() -> None:
    items = rich()
    result = results.result(items)
    straggler = next(check for check in result["checks"] if check["id"] == "training.straggler")
    straggler["measured"]["detail"]["ranks"] = [
        {"rank": rank, "slowdown": 1 + rank / 1000, "ci95": [0.9, None]} for rank in range(300)
    ]
    split = next(item for item in items if item["kind"] == "decomposition")
    for part in ("data", "compute", "exposed", "checkpoint", "other", "total"):
        split[part] = split[part][:1] * 300
    match = next(item for item in items if item["kind"] == "tournament")
    match["nodes"] = list(range(200))
    drawn = {plot.name: plot for plot in page.plots(result, parsed(items))}
    for name in ("straggler", "decomposition"):
        shown = drawn[name].drawn
        assert shown is not None and "of 300" in shown.caption
        assert len(shown.rows) == 300
    for name in ("straggler", "decomposition", "links"):
        root = ET.fromstring(svg_of(drawn[name]))
        inside(root)
        assert float(str(root.get("viewBox")).split()[3]) < 1800


def test_missing_evidence_says_why() -> None:
    text = rendered([])
    assert text.count("Not drawn") == len(page.PLOTS)
    read(text)
    reasons = {plot.name: plot.reason for plot in page.plots(results.result([]), parsed([]))}
    assert str(reasons["busbw"]).startswith("collective.all_reduce is ERROR")
    assert "No node" in str(reasons["nodes"])
    nothing = page.plots(results.result(rich()), Evidence())
    busbw = next(plot for plot in nothing if plot.name == "busbw")
    assert "not contain" in str(busbw.reason)


def test_evidence_that_cannot_be_drawn_costs_no_other_plot() -> None:
    broken = [*rich(), {"kind": "parity", "dtype": "float64", "many": [float("nan")], "one": [float("inf")]}]
    drawn = {plot.name: plot for plot in page.plots(results.result(rich()), parsed(broken))}
    assert "finite" in str(drawn["parity"].reason)
    assert drawn["busbw"].drawn is not None


def test_the_table_has_every_check_with_figure_interval_source_culprit_and_next_action() -> None:
    items = rich()
    result, text = results.result(items), rendered(items)
    for check in result["checks"]:
        assert f"<code>{check['id']}</code>" in text
        if check["next_action"]:
            assert formatting.escaped(check["next_action"]) in text
    straggler = next(check for check in result["checks"] if check["id"] == "training.straggler")
    assert formatting.interval(straggler["measured"]["ci"]) in text
    assert "Culprit: <strong>rank 1</strong>" in text
    assert "declared:" in text


def test_a_regression_stands_beside_the_verdict() -> None:
    before = results.passed(1.0)
    offered = page.render(before, Evidence())
    assert "Regression not judged" in offered
    assert "s baseline." in offered

    made = accepted.offered(before)
    assert made is not None
    worse = page.render(results.passed(0.8, baseline=baseline.render(made)), Evidence())
    assert '<span class="verdict PASS">PASS</span>' in worse
    assert '<strong class="FAIL">Regression against' in worse
    assert "0.998 .. 1.002" in worse  # the reference, with its interval


def test_text_from_outside_is_never_markup() -> None:
    evil = "<script>alert(1)</script>\" onload='x'"
    text = rendered(rich(), stack=evil, instance_type=evil, owner=evil)
    assert "script" not in read(text).tags
    assert "<script" not in text


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_colours_keep_their_contrast(colours: dict[str, str]) -> None:
    assert set(style.LIGHT) == set(style.DARK)
    for ground in ("ground", "panel"):
        for text in ("text", "soft", "good", "bad", "doubt", "link"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for series in range(style.SERIES):
        assert contrast(colours[f"s{series}"], colours["ground"]) >= 3, series
    assert contrast(colours["line"], colours["ground"]) >= 3
    assert contrast(colours["text"], colours["zone"]) >= 4.5


def test_paper_is_always_light() -> None:
    sheet = style.sheet()
    dark, paper = sheet.index("prefers-color-scheme:dark"), sheet.index("@media print")
    assert dark < paper
    assert f"--ground:{style.LIGHT['ground']}" in sheet[paper : paper + 200]
    assert "@page{size:A4" in sheet


@given(st.floats(1e-9, 1e12), st.floats(1.0001, 1e6))
def test_ticks_lie_inside_their_scale(low: float, factor: float) -> None:
    high = low * factor
    scales = [svg.linear([low, high], 0, 100), svg.logarithmic([low, high], 0, 100)]
    scales += [svg.linear([low, high], 0, 100, zero=True)]
    for scale in scales:
        ticks = scale.ticks()
        assert 1 <= len(ticks) <= 12
        assert all(-2.01 <= scale(tick) <= 102.01 for tick in ticks)
        assert scale(low) < scale(high) or factor < 1.001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"), (True, "—"), (0, "0"), (0.0, "0"), (1.0, "1"), (0.1234567, "0.1235"),
        (1234.56, "1\u202f235"),
        (1048576, "1\u202f048\u202f576"), (1.5e-7, "1.500e-07"), (float("nan"), "not a number"),
        (float("inf"), "∞"), (-2.5, "-2.5"), (999.99, "1\u202f000"),
    ],
)  # fmt: skip
def test_numbers_read_well(value: object, text: str) -> None:
    assert formatting.number(value) == text
