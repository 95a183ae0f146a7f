"""tools/links.py finds dead links, anchors and paths."""

from pathlib import Path

import pytest

from tools import links


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("[a](docs/README.md), [b](docs/README.md#tutorials), [c](https://example.com/x.md), [d](docs)", 0),
        ("[a](docs/none.md)", 1),
        ("[a](docs/README.md#none)", 1),
        ("`infra/cost/<cloud>/cluster.py`, `components/{aws,gcp}/tracking/`, `docs/*.md`, `not/ours.py`", 0),
        ("`infra/none.py`", 1),
        ("`components/{aws,none}/tracking/`", 1),
        ("`[a](docs/none.md)` is code", 0),
        ("```text\n[a](docs/none.md)\n```", 0),
    ],
)
def test_dead_links_are_found(line: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = links.ROOT / "page-of-a-test.md"
    real = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **more: line if path == page else real(path, **more))
    assert len(list(links.check(page.name))) == count
