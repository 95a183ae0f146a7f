"""Runs of a program against a recorded state, in a rehearsal of its own that ends with the run."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from infra.engine.install import require
from infra.engine.plan import PlannedStep, PreviewPlan
from infra.engine.stack import EngineStack
from infra.errors import Problem, UserError
from rehearsal.client import Rehearsal
from rehearsal.projects import seeding
from rehearsal.projects.project import read
from rehearsal.projects.recorded import RecordedState, of_export, of_file, placed, without_secrets
from rehearsal.projects.workspace import of_checkout
from trainstack.replay.report import Replay
from trainstack.stamp.effects import changed_copy
from trainstack.stamp.environment import THIS, ProgramPlace, link

_TIMEOUT_S = 60


def replayed(
    state: RecordedState, folder: Path, changes: Mapping[str, str | None], older: ProgramPlace | None = None
) -> Replay:
    """Run the program with the changed files of a client against the state of one of its stacks.

    `older`: the installation that deployed it; its steps with the present files are those that are pending.
    Raises UserError where the state is not one of this folder, or cannot be used.
    """
    with ExitStack() as opened:
        place = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="trainstack-replay-")))
        after = opened.enter_context(changed_copy(folder, changes))
        _require_owned(state, after)
        home = Rehearsal(place / "rehearsal")
        opened.callback(home.stop)
        home.seed([*seeding.rows([*placed(state.deployment["resources"])], state.stack)])
        before: Sequence[PlannedStep] = ()
        errors: Sequence[str] = ()
        if older:
            present = opened.enter_context(changed_copy(folder, {}))
            before, errors = _steps(state, present, home, older)
        if not errors:
            found, errors = _steps(state, after, home, THIS)
            steps, secret = without_secrets(found, state.secrets)
            return Replay(state.stack, state.resources, before, steps, errors, secret)
        return Replay(state.stack, state.resources, before, (), errors)


def states(folder: Path, files: Sequence[Path]) -> tuple[list[RecordedState], list[str]]:
    """States of files or, without any, of every stack of the folder in its backend; stacks with none.

    Raises UserError where one cannot be read.
    """
    if files:
        return [of_file(path) for path in files], []
    found, empty = [], []
    for stack in sorted(read(folder).stacks()):
        state = of_export(json.loads(EngineStack(stack, dict(os.environ), folder).exported()))
        if state is None:
            empty.append(stack)
        else:
            found.append(state)
    return found, empty


def older_installation(folder: Path) -> ProgramPlace:
    """The installation in a virtual environment. Raises UserError where there is none."""
    python = folder / "bin" / "python"
    command = [str(python), "-I", "-c", "from infra.places import PACKAGES; print(PACKAGES)"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        rule, fix = f"has no trainstack: {error}", "Name the environment of the version that deployed it."
        raise UserError([Problem("--older", str(folder), rule, fix, code="no-older-installation")]) from None
    return ProgramPlace(Path(run.stdout.strip()), folder)


def _require_owned(state: RecordedState, folder: Path) -> None:
    project = read(folder)
    if state.project != project.name or state.stack not in project.stacks():
        known = ", ".join(sorted(project.stacks())) or "none"
        rule = f"belongs to stack {state.stack} of project {state.project}"
        fix = f"Name the state of a stack of {project.name}: {known}."
        raise UserError([Problem("--state", None, rule, fix, code="state-of-another-stack")])


def _steps(
    state: RecordedState, folder: Path, home: Rehearsal, program: ProgramPlace
) -> tuple[list[PlannedStep], list[str]]:
    """Steps of an `up`, and the messages of the engine where it failed."""
    link(folder, program)
    workspace = of_checkout(read(folder), state.stack, home, require().path)
    engine = EngineStack(state.stack, workspace.variables, folder)
    engine.replace_state(state.deployment)
    plan = PreviewPlan()
    outcome = plan.listening(engine.preview)(lambda _: None)
    return plan.steps, [] if outcome.succeeded else outcome.errors or ["the preview failed"]
