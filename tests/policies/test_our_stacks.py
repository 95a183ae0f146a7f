"""The shipped environment keeps the rules of these groups, as the real engine previews it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import STACK, native, trainstack

KEPT = ("MLS-COST-", "MLS-GPU-", "MLS-NET-", "MLS-REP-", "MLS-RES-")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from life.home(tmp_path_factory.mktemp("policies"))


@pytest.fixture(scope="module")
def previews(home: Path) -> tuple[Path, Path]:
    """A preview as a document, and as events."""
    digest, events = home.parent / "preview.json", home.parent / "events.jsonl"
    command = ("preview", "--stack", STACK, "--json", "--show-sames", ">")
    streaming = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true"
    done = native(home, *command, f"{digest}\n{streaming} pulumi", *command, str(events))
    assert done.returncode == 0, done.stderr
    return digest, events


def judged(home: Path, file: Path) -> Any:
    done = trainstack(home, "audit", "--preview", str(file), "--format", "json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def results(found: Any) -> dict[str, int]:
    return Counter(one["result"] for one in found["outcomes"] if one["rule"].startswith(KEPT))


def test_the_document_of_a_preview_leaves_nothing_open(home: Path, previews: tuple[Path, Path]) -> None:
    found = judged(home, previews[0])
    assert results(found).keys() == {"pass", "not-applicable"}
    assert found["resources"] > 300


def test_events_tell_less_and_nothing_else(home: Path, previews: tuple[Path, Path]) -> None:
    whole, less = judged(home, previews[0]), judged(home, previews[1])
    assert less["resources"] == whole["resources"]
    assert results(less).keys() == {"pass", "not-applicable", "undetermined"}
    assert results(less)["pass"] < results(whole)["pass"]
