"""The page of a report in a browser: numbers, accessibility, small screens, print, hostile texts."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import axe
from tests.browser.chromium import Page, browser, program
from tests.trainstack.dossier.given import AT, STACKS, absent, facts
from trainstack.dossier import fleet
from trainstack.dossier.document import document
from trainstack.dossier.html.page import fleet_page, page

pytestmark = pytest.mark.skipif(program() is None, reason="needs chromium")
HOSTILE = "\"'><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>&{{7*7}}"
# A4 without the margins of the style sheet, in CSS pixels.
PAPER = 688
_NUMBERS = """
[...document.querySelectorAll('[data-at]')].map(e => (
  {at: e.dataset.at, as: e.dataset.as, text: e.textContent, value: e.getAttribute('value')}))
"""
_WORDS = """
(() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    const known = parent.closest('[data-at], .tick');
    if (/[0-9]/.test(walk.currentNode.data) && !known) found.push(walk.currentNode.data);
  }
  return found;
})()
"""
# Texts of drawings that are shown: too small on the screen, outside of the picture, or over another text.
_TEXTS = """
(() => {
  const small = [], outside = [], covered = [];
  for (const svg of document.querySelectorAll('svg')) {
    const around = svg.getBoundingClientRect();
    if (!around.width) continue;
    const scale = around.width / svg.viewBox.baseVal.width;
    const boxes = [];
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (size < LEAST) small.push([text.textContent, size]);
      const beside = box.left < around.left - 1 || box.right > around.right + 1;
      const above = box.top < around.top - 2 || box.bottom > around.bottom + 2;
      if (beside || above) outside.push(text.textContent);
      if (!text.hasAttribute('transform')) boxes.push([text.textContent, box]);
    }
    boxes.forEach(([name, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
      const beside = a.left >= b.right - 1 || b.left >= a.right - 1;
      if (!beside && a.top < b.bottom - 3 && b.top < a.bottom - 3) covered.push([name, other]);
    }));
  }
  const root = document.documentElement;
  return {small, outside, covered, wide: root.scrollWidth - root.clientWidth};
})()
"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module", params=(*STACKS, "fleet"))
def shown(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    made = json.loads(json.dumps(_document(request.param)))
    path = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    path.write_text((fleet_page if request.param == "fleet" else page)(made), encoding="utf-8")
    return made, path


def _document(name: str) -> dict[str, Any]:
    if name != "fleet":
        return document(facts(name))
    reports = [(stack, document(facts(stack))) for stack in STACKS]
    return fleet.document([*reports, ("new-client", document(absent("dev-aws")))], AT)


def at(made: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        made = made[int(key)] if isinstance(made, list) else made[key]
    return made


def test_every_number_is_that_of_the_document(tab: Page, shown: tuple[dict[str, Any], Path]) -> None:
    made, path = shown
    tab.open(path)
    numbers = tab.evaluate(_NUMBERS)
    assert len(numbers) > (20 if path.stem == "fleet" else 300)
    units = {"minutes": 60.0, "ms": 0.001, "percent": 0.01}
    factors = {"T": 1e12, "B": 1e9, "M": 1e6, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
    for one in numbers:
        value = at(made, one["at"])
        value = len(value) if isinstance(value, list) else value
        if value is None:
            assert not re.search(r"\d", one["text"]), one
            continue
        read = re.fullmatch(r"\$?(-?[\d,.]+(?:e-?\d+)?)\s?(\S.*)?", one["text"])
        assert read, one
        unit = read[2] or ""
        factor = units.get(one["as"], 1.0) if one["as"] != "minutes" or unit == "min" else 1.0
        factor *= factors.get(unit, 1.0)
        digits = read[1].replace(",", "").partition(".")[2].partition("e")[0]
        least = 0.5000001 * 10.0 ** -len(digits) if "e" not in read[1] else 0.0
        scaled = float(read[1].replace(",", ""))
        assert math.isclose(
            scaled * factor, value, abs_tol=least * factor, rel_tol=0.006 if one["as"] == "gb_s" else 1e-9
        ), one
        assert one["value"] is None or float(one["value"]) == value, one


def test_no_other_number_is_on_the_page(tab: Page, shown: tuple[dict[str, Any], Path]) -> None:
    made, path = shown
    tab.open(path)
    known = " ".join(_strings(made))
    unknown = [
        word
        for text in tab.evaluate(_WORDS)
        for word in text.split()
        if re.search(r"\d", word) and word.strip(",.;:()\u2026") not in known
    ]
    assert unknown == []


def _strings(made: Any) -> Iterator[str]:
    if isinstance(made, dict):
        made = [*made, *made.values()]
    if isinstance(made, list):
        for one in made:
            yield from _strings(one)
    elif isinstance(made, str):
        yield made


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False), (400, True)])
def test_the_page_is_accessible_and_asks_for_nothing(
    tab: Page, shown: tuple[dict[str, Any], Path], width: int, *, dark: bool
) -> None:
    _, path = shown
    tab.errors.clear()
    tab.requests.clear()
    tab.open(path, width=width, dark=dark)
    tab.evaluate(axe.source() + "; 0")
    found = tab.evaluate(
        "axe.run().then(r => ({good: r.passes.length,"
        " bad: r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])}))"
    )
    assert found["bad"] == []
    assert found["good"] > 15
    assert tab.errors == []
    assert tab.requests == [path.resolve().as_uri()]


@pytest.mark.parametrize(("width", "least"), [(1280, 10.0), (700, 8.0), (400, 10.0), (320, 8.0)])
def test_texts_are_legible_and_do_not_collide(
    tab: Page, shown: tuple[dict[str, Any], Path], width: int, least: float
) -> None:
    tab.open(shown[1], width=width)
    assert tab.evaluate(_TEXTS.replace("LEAST", str(least))) == {
        "small": [],
        "outside": [],
        "covered": [],
        "wide": 0,
    }


def test_it_prints_on_a4(tab: Page, shown: tuple[dict[str, Any], Path]) -> None:
    tab.open(shown[1], width=PAPER, media="print", dark=True)
    assert tab.evaluate(_TEXTS.replace("LEAST", "8")) == {
        "small": [],
        "outside": [],
        "covered": [],
        "wide": 0,
    }
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = tab.pdf()
    boxes = {
        tuple(map(round, map(float, box.split()))) for box in re.findall(rb"/MediaBox\s*\[([^]]+)\]", pdf)
    }
    assert boxes == {(0, 0, 595, 842)}


def test_hostile_texts_stay_texts(tab: Page, tmp_path: Path) -> None:
    """Names, tags and messages come from files, clouds and members."""
    made = _poisoned(json.loads(json.dumps(document(facts("dev-aws")))), "")
    path = tmp_path / "hostile.html"
    path.write_text(page(made), encoding="utf-8")
    tab.errors.clear()
    tab.requests.clear()
    tab.open(path, width=400)
    assert (
        tab.evaluate("document.querySelectorAll('img, script, iframe, object, a[href^=javascript]').length")
        == 0
    )
    assert tab.evaluate("document.title").endswith(HOSTILE)
    assert tab.errors == []
    assert tab.requests == [path.resolve().as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_an_inline_script_would_not_run(tab: Page, tmp_path: Path) -> None:
    """The content security policy is the second line of defence."""
    path = tmp_path / "script.html"
    text = page(document(facts("dev-aws")))
    path.write_text(
        text.replace("</main>", "<script>document.title = 'owned'</script></main>"), encoding="utf-8"
    )
    tab.errors.clear()
    tab.open(path)
    assert tab.evaluate("document.title") != "owned"
    assert any("Content Security Policy" in one for one in tab.errors)


# Words that the page compares; all other texts are shown.
_WORDS_OF_OURS = (
    "state",
    "verdict",
    "source",
    "of",
    "cloud",
    "direction",
    "device",
    "status",
    "result",
    "schema",
)


def _poisoned(made: Any, key: str) -> Any:
    if isinstance(made, dict):
        return {name: _poisoned(one, name) for name, one in made.items()}
    if isinstance(made, list):
        return [_poisoned(one, key) for one in made]
    return made + HOSTILE if isinstance(made, str) and key not in _WORDS_OF_OURS else made
