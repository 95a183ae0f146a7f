"""Changes of a stack on AWS that runs, each with the list of what it does, and the nodes that it ends."""

from collections.abc import Iterator

import pytest

from infra.engine.plan import PlannedStep
from tests.rehearsal.day2.describe import text
from tests.rehearsal.day2.stack import AWS, ended

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[PlannedStep]]]:
    with AWS.deployed(tmp_path_factory.mktemp("day2")) as stack:
        yield AWS.plans(stack)


@pytest.mark.parametrize("name", AWS.edits)
def test_a_change_does_what_was_reviewed(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert AWS.file(name).read_text() == text(name, found[name])


@pytest.mark.parametrize("name", AWS.edits)
def test_only_changes_that_have_to_end_nodes(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert ended(found[name]) == AWS.ending.get(name, set())


def test_no_file_is_left_of_a_change_that_is_gone() -> None:
    assert {*AWS.file("x").parent.iterdir()} == {AWS.file(name) for name in AWS.edits}
