"""Operations on all stacks of a large stack: their order, failures, and interruptions."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import typer
from typer.testing import CliRunner

from infra import stackspec
from infra.engine.golang import ROOT
from infra.errors import UserError
from tests.trainstack.fleet.fake import PROGRAM
from trainstack.cli import execution
from trainstack.cli.app import app
from trainstack.cli.operations import deployment, session, several
from trainstack.fleet import child

MANAGER, WORKERS = "large-aws", ["large-aws-usw2", "large-aws-use1"]
PATIENCE_S = 60.0
INTERRUPTED = """
from tests.trainstack.fleet.test_several import execute, without_engine
without_engine()
execute("up", "--yes")
"""


def without_engine(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Replace what runs an engine by the fake program, for the manager in the process of the command."""

    def run(command: str) -> None:
        sys.argv = ["", command, "-s", MANAGER]
        try:
            exec(PROGRAM, {})
        except SystemExit as end:
            if end.code:
                raise typer.Exit(int(end.code)) from None

    def opened(stack: str, **_: object) -> SimpleNamespace:
        loaded = stackspec.load_file(stack)
        named = {name: functools.partial(_operation, run, name) for name in ("up", "destroy", "preview")}
        # Nothing is deployed yet.
        engine = SimpleNamespace(outputs=dict)
        return SimpleNamespace(spec=loaded.spec, loaded=loaded, engine=engine, **named)

    replace(child, "PROGRAM", PROGRAM)
    replace(deployment, "open_deployment", opened)
    replace(session, "open_session", opened)


def _operation(run: Callable[[str], None], name: str, *_: object, **__: object) -> None:
    run(name)


def execute(*words: str) -> None:
    """Run a command and end this process with its exit code."""
    sys.exit(execution.execute(app, [*words, "-s", MANAGER]))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".trainstack").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    without_engine(monkeypatch.setattr)


def done(folder: Path, behaviour: str, *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    (folder / "behaviour.py").write_text(behaviour)
    found = CliRunner().invoke(app, [*words, "-s", MANAGER])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stdout, found.stderr


def called(folder: Path) -> list[list[str]]:
    """The words of each command, in the order of their starts."""
    path = folder / ".trainstack" / "calls.txt"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def order(folder: Path) -> list[str]:
    return [words[words.index("-s") + 1] for words in called(folder)]


def test_up_deploys_the_clusters_and_then_the_manager(tmp_path: Path) -> None:
    code, _, errors = done(tmp_path, "", "up", "--yes", "--rehearse")
    assert code == 0, errors
    *workers, last = order(tmp_path)
    assert (sorted(workers), last) == (sorted(WORKERS), MANAGER)
    for words in called(tmp_path)[:2]:
        assert words[0] == "up"
        assert {*words[3:]} == {"--yes", "--rehearse"}


def test_validations_of_a_rehearsal_do_not_share_few_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several, "REHEARSED_AT_ONCE", 1)
    # Each notes its end, and fails where another one runs.
    behaviour = (
        "import pathlib, sys\n"
        "if sys.argv[1] == 'up':\n"
        "    alone = pathlib.Path('.trainstack/runs')\n"
        "    alone.mkdir()\n"
        "    alone.rmdir()\n"
    )
    code, _, errors = done(tmp_path, behaviour, "up", "--yes", "--rehearse")
    assert code == 0, errors
    assert order(tmp_path) == [*WORKERS, MANAGER]


def test_destroy_ends_the_manager_and_then_the_clusters(tmp_path: Path) -> None:
    code, _, errors = done(tmp_path, "", "destroy", "--yes", "--now")
    assert code == 0, errors
    first, *workers = order(tmp_path)
    assert (first, sorted(workers)) == (MANAGER, sorted(WORKERS))
    assert all({*words[3:]} == {"--yes", "--now"} for words in called(tmp_path)[1:])


def test_a_preview_shows_all_stacks_and_asks_nothing(tmp_path: Path) -> None:
    code, output, errors = done(tmp_path, "", "preview", "--rehearse")
    assert code == 0, errors
    assert sorted(order(tmp_path)) == sorted([MANAGER, *WORKERS])
    assert all(words[3:] == ["--rehearse"] for words in called(tmp_path)[1:])
    assert all(stack in output for stack in WORKERS)


def test_a_cluster_that_fails_stops_no_other_one_but_the_manager(tmp_path: Path) -> None:
    behaviour = f"fail('no capacity') if stack == {WORKERS[0]!r} else None"
    code, _, errors = done(tmp_path, behaviour, "up", "--yes")
    assert code == 1
    assert sorted(order(tmp_path)) == sorted(WORKERS)
    assert f"{WORKERS[0]} failed" in errors
    assert f"{WORKERS[1]} failed" not in errors
    # The next one deploys all: those that are deployed have no change.
    code, _, errors = done(tmp_path, "", "up", "--yes")
    assert code == 0, errors
    assert order(tmp_path)[-1] == MANAGER
    assert sorted(order(tmp_path)[2:4]) == sorted(WORKERS)


def test_what_a_cluster_does_is_shown_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, echo = tmp_path / "shown", typer.echo

    def show(text: str = "", **where: Any) -> None:
        if WORKERS[0] in text and "halfway" in text:
            shown.touch()
        echo(text, **where)

    monkeypatch.setattr(several, "SHOWN_EVERY_S", 0.05)
    monkeypatch.setattr(typer, "echo", show)
    waits = f"print('halfway', flush=True)\nwhile not pathlib.Path({str(shown)!r}).exists(): time.sleep(0.02)"
    behaviour = f"if stack == {WORKERS[0]!r}:\n    " + waits.replace("\n", "\n    ")
    assert done(tmp_path, behaviour, "up", "--yes")[0] == 0


def test_violations_of_a_cluster_are_those_of_the_whole(tmp_path: Path) -> None:
    violated = f"fail('violated', code=3) if stack == {WORKERS[1]!r} else None"
    assert done(tmp_path, violated, "up", "--yes")[0] == 3
    assert (
        done(tmp_path, f"{violated}; fail('other') if stack != {MANAGER!r} else None", "up", "--yes")[0] == 1
    )


def test_a_cluster_that_cannot_be_reached_is_named_and_the_others_end(tmp_path: Path) -> None:
    behaviour = f"fail('dial tcp: i/o timeout') if stack == {WORKERS[0]!r} else None"
    code, _, errors = done(tmp_path, behaviour, "destroy", "--yes")
    assert code == 1
    assert sorted(order(tmp_path)) == sorted([MANAGER, *WORKERS])
    assert f"{WORKERS[0]} failed" in errors
    assert f"{WORKERS[1]} failed" not in errors


def test_clusters_stay_while_their_manager_stays(tmp_path: Path) -> None:
    behaviour = f"fail('protected') if stack == {MANAGER!r} else None"
    assert done(tmp_path, behaviour, "destroy", "--yes")[0] == 1
    assert order(tmp_path) == [MANAGER]


def test_a_confirmed_plan_is_that_of_the_manager_alone(tmp_path: Path) -> None:
    assert done(tmp_path, "", "up", "--yes", "--plan", "0" * 64)[0] == 0
    assert order(tmp_path) == [MANAGER]


def test_without_a_terminal_nothing_runs_unconfirmed(tmp_path: Path) -> None:
    for command in ("up", "destroy"):
        with pytest.raises(UserError) as caught:
            done(tmp_path, "", command)
        assert [one.code for one in caught.value.problems] == ["confirmation-needs-terminal"]
    assert called(tmp_path) == []


def test_the_document_of_the_manager_is_alone_on_standard_output(tmp_path: Path) -> None:
    code, output, _ = done(tmp_path, "", "up", "--yes", "--format", "json")
    assert (code, json.loads(output)["stack"]) == (0, MANAGER)


def _wait(for_it: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not for_it():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_commands_of_all_clusters(tmp_path: Path, number: int) -> None:
    (tmp_path / "behaviour.py").write_text("hang()")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _wait(lambda: len(called(tmp_path)) == 2)
    commands = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert not any(one.is_running() for one in commands)
    assert len(commands) == 2
    assert sorted(order(tmp_path)) == sorted(WORKERS)
    assert all(f"{stack} was interrupted" in errors for stack in WORKERS)
