"""The page for people: complete on its first screen, one file, and safe with any name."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from policies.report import html_page as page_module
from tests.policies.audited import LOGS, SECRET, audit, logs, state, urn

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}\x1b[31m\ud800"
WAIVER = {
    "rule": "MLS-COST-07", "resource": {"urn": urn(LOGS, "waived")}, "owner": "ben <b>",
    "approvers": ["cleo"], "reason": "kept for a court", "ticket": "LAW-7",
    "compensating_control": "a lifecycle rule", "created": "2026-11-01", "expires": "2026-11-30",
}  # fmt: skip
# Elements whose end tag HTML omits.
_VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text; raises where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.said.setdefault(self._open[-1], []).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(data for reported in self.said.values() for data in reported).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("page")
    before, waivers = home / "before.json", home / "waivers.yaml"
    before.write_text(audit(state(home, logs("known", 0), logs("gone", 0)), "--format", "json")[1])
    waivers.write_text(json.dumps({"waivers": [WAIVER]}))
    file = state(home, *(logs(one, 0) for one in ("known", "waived", HOSTILE)), logs("hidden", SECRET))
    return audit(file, "--format", "html", "--waivers", str(waivers), "--baseline", str(before))[1]


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_it_starts_with_a_summary(page: Page) -> None:
    assert "Violations: 1 medium." in page.text
    assert "of app/dev" in page.text
    worst = page.text[page.text.index("MLS-COST-07") :]
    assert "Owner: anna" in page.text and "365 days" in worst
    assert "in 7 days" in page.text and "ben <b>" in page.text
    assert "retentionInDays is" in page.text
    assert f"MLS-COST-07 {urn(LOGS, 'gone')}" in page.text
    for framework in ("SOC 2", "ISO/IEC 27001:2022", "ISO/IEC 42001:2023", "NIST AI"):
        assert framework in page.text
    assert "to be confirmed" in page.text


def test_no_name_becomes_markup(page: Page, source: str) -> None:
    assert HOSTILE.partition("\x1b")[0] in page.text
    assert "\x1b" not in source and "alert(1)</script>" not in source
    assert not page.named("img")
    assert len(page.named("script")) == 1
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_it_asks_no_other_host_for_anything(page: Page) -> None:
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    assert not any({"src", "srcset", "action"} & attributes.keys() for _, attributes in page.elements)
    assert all(str(one["href"]).startswith("#") for one in page.named("a"))
    (policy,) = [one["content"] for one in page.named("meta") if "http-equiv" in one]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; "
        r"base-uri 'none'; form-action 'none'",
        str(policy),
    )


def test_links_lead_somewhere_and_no_id_is_there_twice(page: Page) -> None:
    ids = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(one["href"])[1:] for one in page.named("a")} <= set(ids)


def test_readers_of_a_screen_find_their_way(page: Page) -> None:
    assert page.elements[0] == ("html", {"lang": "en"})
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1 and tags.count("main") == 1
    assert tags.count("table") == tags.count("caption")
    assert all(one.get("scope") in ("row", "col") for one in page.named("th"))
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(headings))


def test_it_is_whole_without_its_script(page: Page) -> None:
    (form,) = page.named("form")
    assert "hidden" in form
    assert not any("hidden" in one for one in page.named("tr"))
    rows = [one for one in page.named("tr") if "data-result" in one]
    assert sorted(str(one["data-result"]) for one in rows if one["data-severity"] == "medium") == [
        "fail", "known", "undetermined", "waived",
    ]  # fmt: skip


def test_a_clean_stack_is_said_to_be_clean(tmp_path: Path) -> None:
    said = Page(audit(state(tmp_path, logs("good", 30)), "--format", "html")[1]).text
    assert "Clean: " in said
    assert "No violations" in said


@pytest.mark.parametrize(("days", "said"), [(SECRET, "Undetermined: "), (30, "Clean: ")])
def test_the_verdict_says_what_the_exit_code_means(tmp_path: Path, days: object, said: str) -> None:
    assert said in Page(audit(state(tmp_path, logs("one", days)), "--format", "html")[1]).text


def test_it_has_the_colours_whose_contrast_is_known() -> None:
    """Those of the page about a training run; its tests hold every pair against WCAG."""
    own = Path(page_module.__file__).with_name("page.css").read_text()
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", own)
