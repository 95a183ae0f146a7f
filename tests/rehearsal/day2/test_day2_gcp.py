"""Changes of a deployed stack on Google Cloud, with their reviewed effects and the nodes they end."""

from collections.abc import Iterator

import pytest

from infra.engine.plan import PlannedStep
from tests.rehearsal.day2.describe import text
from tests.rehearsal.day2.stack import GCP, ended

# `more`: twenty-five previews; the rules of replacement have tests of their own.
pytestmark = [pytest.mark.timeout(900), pytest.mark.more]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[PlannedStep]]]:
    with GCP.deployed(tmp_path_factory.mktemp("day2")) as stack:
        yield GCP.plans(stack)


@pytest.mark.parametrize("name", GCP.edits)
def test_effects_of_a_change_are_as_reviewed(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert GCP.file(name).read_text() == text(name, found[name])


@pytest.mark.parametrize("name", GCP.edits)
def test_only_changes_that_have_to_end_nodes(name: str, found: dict[str, list[PlannedStep]]) -> None:
    assert ended(found[name]) == GCP.ending.get(name, set())


def test_no_file_belongs_to_a_removed_change() -> None:
    assert {*GCP.file("x").parent.iterdir()} == {GCP.file(name) for name in GCP.edits}
