"""A stack that was deployed before a rule of today, which its spec breaks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.errors import Problem, UserError
from infra.stackspec import LoadedSpec
from tests.rehearsal.runs import life
from tests.trainstack.cli.command import run


@pytest.fixture(params=["small-aws", "small-gcp"])
def stack(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str, str]]:
    """Options that select a stack whose spec every rule set refuses."""
    broken = Problem("layout", None, "is not supported any more", "Use another.", code="newer-rule")
    monkeypatch.setattr(sys.modules[LoadedSpec.__module__], "broken_rules", lambda *_, **__: [broken])
    for home in life.home(tmp_path):
        monkeypatch.setenv("TRAINSTACK_REHEARSAL_HOME", str(home))
        yield "-s", request.param, "--rehearse"


@pytest.mark.parametrize("command", ["up", "preview"])
def test_it_is_not_deployed_again(stack: tuple[str, str, str], command: str) -> None:
    with pytest.raises(UserError) as caught:
        run(command, *stack, *(["--yes"] if command == "up" else []))
    assert "newer-rule" in {code for code, _ in caught.value.codes}


def test_it_can_be_shown_refreshed_and_destroyed(stack: tuple[str, str, str]) -> None:
    for command in (["status"], ["refresh", "--yes"], ["destroy", "--yes"]):
        code, output = run(command[0], *stack, *command[1:])
        assert code == 0, output
