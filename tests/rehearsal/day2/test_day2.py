"""Changes of a deployed stack on AWS, with their reviewed effects and the nodes that they end."""

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
def test_effects_of_a_change_are_as_reviewed(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert AWS.file(name).read_text() == text(name, found[name])


@pytest.mark.parametrize("name", AWS.edits)
def test_only_changes_that_have_to_end_nodes(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert ended(found[name]) == AWS.ending.get(name, set())


def test_no_file_belongs_to_a_removed_change() -> None:
    assert {*AWS.file("x").parent.iterdir()} == {AWS.file(name) for name in AWS.edits}
