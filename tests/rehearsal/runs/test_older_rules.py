"""A stack that was deployed before a rule of today, which its spec breaks."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.engine import recovery
from infra.errors import Problem, UserError
from infra.stackspec import LoadedSpec
from tests.rehearsal.runs import life
from tests.trainstack.cli.command import run


def _in_the_state(home: Path, stack: str) -> None:
    """A state with the root of the stack alone: a deployment without what is slow."""
    kind = "pulumi:pulumi:Stack"
    urn = f"urn:pulumi:{stack}::trainstack::{kind}::trainstack-{stack}"
    latest = {"manifest": {}, "resources": [{"urn": urn, "type": kind, "custom": False}]}
    checkpoint = {"stack": f"organization/trainstack/{stack}", "latest": latest}
    file = home / "state" / ".pulumi" / "stacks" / "trainstack" / f"{stack}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 3, "checkpoint": checkpoint}))


def _left(home: Path, stack: str) -> int:
    return len(recovery.resources(home / "state", "trainstack", stack))


@pytest.fixture(params=["small-aws", "dev-gcp"])
def stack(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str, str]]:
    """Options that select a deployed stack whose spec every rule set refuses."""
    broken = Problem("layout", None, "is not supported any more", "Use another.", code="newer-rule")
    monkeypatch.setattr(sys.modules[LoadedSpec.__module__], "broken_rules", lambda *_, **__: [broken])
    for home in life.home(tmp_path):
        monkeypatch.setenv("TRAINSTACK_REHEARSAL_HOME", str(home))
        _in_the_state(home, request.param)
        yield "-s", request.param, "--rehearse"


@pytest.mark.parametrize("command", ["up", "preview"])
def test_it_is_not_deployed_again(stack: tuple[str, str, str], command: str) -> None:
    with pytest.raises(UserError) as caught:
        run(command, *stack, *(["--yes"] if command == "up" else []))
    assert "newer-rule" in {code for code, _ in caught.value.codes}


def test_it_can_be_shown_refreshed_and_destroyed_with_a_warning(
    stack: tuple[str, str, str], tmp_path: Path
) -> None:
    code, output = run("explain", "owner", "-s", stack[1])
    assert code == 0 and "[newer-rule]" in output, output
    home = tmp_path / "rehearsal"
    for command in (["status"], ["refresh", "--yes"], ["destroy", "--yes"]):
        assert _left(home, stack[1]) == 1
        code, output = run(command[0], *stack, *command[1:])
        assert code == 0 and "[newer-rule]" in output, output
    assert _left(home, stack[1]) == 0
