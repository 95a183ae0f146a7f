"""Without a place for the state, a command says what to do; neither cloud is asked before."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.engine import recovery
from infra.engine.install import require
from infra.engine.stack import EngineStack
from infra.errors import Problem, UserError
from trainstack.cli.app import app

COMMANDS = (["preview"], ["status"], ["up", "--yes"], ["destroy", "--yes"], ["kubeconfig"])


@pytest.fixture(autouse=True)
def logged_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home without a login, with nothing that names a backend."""
    for name in [one for one in os.environ if one.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULUMI_SKIP_UPDATE_CHECK", "true")


def refused(*command: str) -> Problem:
    """The one problem that ends a command."""
    done = CliRunner().invoke(app, [*command])
    assert isinstance(done.exception, UserError), done.exception
    (problem,) = done.exception.problems
    return problem


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
@pytest.mark.parametrize("stack", ["dev-aws", "dev-gcp"])
def test_who_is_logged_in_nowhere_is_reported_to_log_in(command: list[str], stack: str) -> None:
    problem = refused(*command, "-s", stack)
    assert problem.path == "state" and "pulumi login" in problem.fix


def test_a_stack_that_the_backend_does_not_have_is_made_by_one_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    problem = refused("preview", "-s", "dev-gcp")
    assert (problem.path, problem.value) == ("state", "dev-gcp")
    assert "pulumi stack init dev-gcp" in problem.fix


def test_a_backend_that_does_not_answer_is_reported_in_the_words_of_pulumi(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'absent'}")
    problem = refused("status", "-s", "dev-aws")
    assert "absent" in problem.rule and "Traceback" not in str(problem)


def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[EngineStack, Path]:
    """The stack `s` of the project `some`, without resources, and the folder of its backend."""
    folder, state = tmp_path / "project", tmp_path / "state"
    folder.mkdir()
    state.mkdir()
    (folder / "Pulumi.yaml").write_text("name: some\nruntime: python\n")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{state}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    subprocess.run([require().path, "stack", "init", "s", "--non-interactive"], cwd=folder, check=True)
    return EngineStack("s", dict(os.environ), folder), state


KIND = "pulumi:providers:absent"
URN = "urn:pulumi:s::some::{}::{}".format
PROVIDER = {"urn": URN(KIND, "main"), "type": KIND, "custom": True, "id": "x", "inputs": {}}


def filled(folder: Path, **more: object) -> None:
    """Give the stack a root, a provider, and further parts of a deployment."""
    root = {"urn": URN("pulumi:pulumi:Stack", "some-s"), "type": "pulumi:pulumi:Stack"}
    deployment = {"manifest": {}, "resources": [root, PROVIDER], **more}
    (folder / "state.json").write_text(json.dumps({"version": 3, "deployment": deployment}))
    command = [require().path, "stack", "import", "--stack", "s", "--file", str(folder / "state.json")]
    subprocess.run([*command, "--non-interactive"], cwd=folder / "project", check=True)


def test_the_lock_of_a_stack_is_asked_for_without_a_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine, state = empty(monkeypatch, tmp_path)
    assert engine.ask_lock().succeeded
    filled(tmp_path)
    before = engine.resources()
    found = engine.ask_lock()
    assert found.succeeded and not found.locked, found.errors
    with recovery.locked(state, "some", "s"):
        found = engine.ask_lock()
    assert found.locked and not found.succeeded
    assert engine.resources() == before


def retained(engine: EngineStack) -> list[str]:
    return [one["urn"] for one in engine.resources() if one.get("retainOnDelete")]


def test_resources_are_marked_only_while_no_other_operation_changes_the_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine, state = empty(monkeypatch, tmp_path)
    filled(tmp_path)
    wanted = [str(PROVIDER["urn"])]
    with recovery.locked(state, "some", "s"):
        assert engine.retain(wanted).locked
    assert retained(engine) == []

    run = engine.cli.run
    seen: list[str] = []

    def interfering(on: str, act: Callable[[], AbstractContextManager[object]]) -> None:
        """Act while the engine runs the last export, or the import."""
        seen.clear()

        def runs(args: list[str], *rest: Any, **more: Any) -> Any:
            seen.append(args[1])
            last = seen.count("export") == 4 if on == "export" else args[1] == "import"
            with act() if last and args[1] == on else nullcontext():
                return run(args, *rest, **more)

        monkeypatch.setattr(engine.cli, "run", runs)

    def ended() -> AbstractContextManager[object]:
        filled(tmp_path, resources=[PROVIDER])
        return nullcontext()

    # Another operation ends between the two.
    interfering("export", ended)
    assert engine.retain(wanted).locked and "import" not in seen
    # One begins before the import.
    interfering("import", lambda: recovery.locked(state, "some", "s"))
    assert engine.retain(wanted).locked and "import" in seen
    monkeypatch.setattr(engine.cli, "run", run)
    assert retained(engine) == []
    assert engine.retain(wanted).succeeded and retained(engine) == wanted


def test_resources_are_not_marked_while_the_result_of_an_operation_is_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine, state = empty(monkeypatch, tmp_path)
    filled(tmp_path)
    path = state / ".pulumi" / "stacks" / "some" / "s.json"
    content = json.loads(path.read_text())
    lost = {**PROVIDER, "urn": URN(KIND, "lost")}
    content["checkpoint"]["latest"]["pending_operations"] = [{"resource": lost, "type": "creating"}]
    path.write_text(json.dumps(content))
    before = path.read_text()
    with pytest.raises(UserError) as refusal:
        engine.retain([str(PROVIDER["urn"])])
    assert refusal.value.codes == (("operation-pending", URN(KIND, "lost")),)
    assert path.read_text() == before


def test_a_state_that_cannot_be_read_is_no_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine, state = empty(monkeypatch, tmp_path)
    assert engine.outputs() == {} and engine.resources() == []
    (state / ".pulumi" / "stacks" / "some" / "s.json").write_text("{")
    for read in (engine.outputs, engine.resources):
        with pytest.raises(UserError, match="JSON") as refusal:
            read()
        (problem,) = refusal.value.problems
        assert problem.path == "state" and "pulumi login" in problem.fix
