"""Ten changes of a stack that runs, each with the list of what it does, and the nodes that it ends.

`python -m tests.rehearsal.day2.test_day2` writes the lists anew after a change that is meant.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.drains import drains
from infra.engine.plan import Step
from rehearsal.client import Rehearsal
from tests.rehearsal.day2.changes import DRAINING, EDITS
from tests.rehearsal.day2.describe import text
from tests.rehearsal.day2.stack import edited, planned, select

GOLDEN = Path(__file__).with_name("golden")
CACHE = Path(__file__).resolve().parents[3] / ".trainstack" / "cache"
pytestmark = pytest.mark.timeout(900)


@contextmanager
def deployed(folder: Path) -> Iterator[Rehearsal]:
    """A home in which the stack runs; gone afterwards."""
    (folder / "cache").symlink_to(CACHE)
    home = Rehearsal(folder / "rehearsal")
    try:
        select(home, edited()).up()
        yield home
    finally:
        home.stop()


def plans(home: Rehearsal) -> dict[str, list[Step]]:
    return {name: planned(home, edit) for name, edit in EDITS.items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Step]]]:
    with deployed(tmp_path_factory.mktemp("day2")) as home:
        yield plans(home)


def file(name: str) -> Path:
    return GOLDEN / f"{name.lower().replace(' ', '-')}.txt"


@pytest.mark.parametrize("name", EDITS)
def test_a_change_does_what_was_reviewed(name: str, found: dict[str, list[Step]]) -> None:
    assert file(name).read_text() == text(name, found[name])


@pytest.mark.parametrize("name", EDITS)
def test_only_changes_that_have_to_end_nodes(name: str, found: dict[str, list[Step]]) -> None:
    assert bool(list(drains(found[name]))) == (name in DRAINING)


def test_no_file_is_left_of_a_change_that_is_gone() -> None:
    assert set(GOLDEN.iterdir()) == {file(name) for name in EDITS}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, deployed(Path(place)) as running:
        for change, steps in plans(running).items():
            file(change).write_text(text(change, steps))
