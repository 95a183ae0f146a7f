"""`trainstack rehearse run`: a Pulumi project in the emulated clouds, created, checked and deleted."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi.automation.events import EngineEvent

from infra.engine.console import new_console
from infra.engine.install import Cli, require
from infra.engine.progress import watched
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from rehearsal.client import Rehearsal
from rehearsal.core.packages import PACKAGES
from rehearsal.projects import assertions, dependencies, homes, recorded, seeding
from rehearsal.projects import workspace as workspaces
from rehearsal.projects.assertions import Assertions
from rehearsal.projects.project import PYTHON, PulumiProject, read
from rehearsal.projects.reports import Form, forms, text
from rehearsal.projects.reports.model import DESTROY, PREVIEW, UNCHANGED, UP, ProjectReport, RehearsalStep
from rehearsal.projects.workspace import Workspace
from rehearsal.recovery import alone

INTERRUPTED_EXIT_CODE = 130


class _InterruptedError(Exception):
    """Ctrl-C ended a step."""


@dataclass(frozen=True)
class Options:
    """Options of a rehearsal besides the Pulumi command."""

    stack: str = ""
    settings: Sequence[str] = ()
    report: Form = "text"
    """Form of the report; others than text go to the standard output alone."""
    assertions: Path | None = None
    """A file of assertions; None: `rehearsal.yaml` of the project, if there is one."""
    seed: Path | None = None
    """A file of `pulumi stack export`: `up` is previewed against its state, and nothing is created."""


def run(folder: Path, options: Options, arguments: Sequence[str]) -> int:
    """Run a Pulumi command on the project, or without one: up, up again, destroy. Returns the exit code."""
    _refuse_report(options, arguments)
    project = read(folder)
    asserted = assertions.read(options.assertions) if options.assertions else assertions.of_project(folder)
    to_stderr = options.report != "text"
    if options.seed is not None:
        try:
            report = _seeded(project, options, options.seed, to_stderr=to_stderr)
        except _InterruptedError:
            return INTERRUPTED_EXIT_CODE
        return _reported(project, report, options, asserted)
    rehearsal, stack = homes.of_project(project), project.choose(options.stack)
    workspace = _opened(project, rehearsal, stack, options, to_stderr=to_stderr)
    with alone(rehearsal, project.name, stack):
        if arguments:
            command = [require().path, *arguments]
            return subprocess.run(
                command, cwd=workspace.folder, env=workspace.variables, check=False
            ).returncode
        try:
            engine = EngineStack(stack, workspace.variables, workspace.folder)
            report = _life(project, engine, rehearsal, to_stderr=to_stderr)
        except _InterruptedError:
            return INTERRUPTED_EXIT_CODE
    return _reported(project, report, options, asserted)


def planned(folder: Path, options: Options) -> dict[str, Any]:
    """The document of `pulumi preview --json --show-sames` of a project, in its rehearsal.

    Raises UserError where the preview fails.
    """
    project = read(folder)
    rehearsal, stack = homes.of_project(project), project.choose(options.stack)
    workspace = _opened(project, rehearsal, stack, options, to_stderr=True)
    with alone(rehearsal, project.name, stack):
        engine = EngineStack(stack, workspace.variables, workspace.folder)
        return engine.planned(
            "Pass a setting that is missing as --config KEY=VALUE; "
            f"`trainstack rehearse run {folder} -- preview` shows the same at length."
        )


def _opened(
    project: PulumiProject, rehearsal: Rehearsal, stack: str, options: Options, *, to_stderr: bool
) -> Workspace:
    """The workspace of a project's stack, with the settings of the options; prints notes."""
    if project.language == PYTHON:
        _refuse_missing(project)
    cli = require()
    workspace = workspaces.of_project(project, stack, rehearsal, cli.path)
    for setting in options.settings:
        _set(cli, workspace, setting)
    console = new_console(stderr=to_stderr)
    for line in workspace.notes:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    return workspace


def _seeded(project: PulumiProject, options: Options, file: Path, *, to_stderr: bool) -> ProjectReport:
    """Preview `up` against an exported state, in a home of its own that ends with it.

    Raises UserError for a state that is not one of this project.
    """
    state = recorded.emulated(recorded.of_file(file))
    if state.project != project.name or options.stack not in ("", state.stack):
        rule = f"belongs to stack {state.stack} of project {state.project}"
        fix = f"Name the state of a stack of {project.name}{f', {options.stack}' if options.stack else ''}."
        raise UserError([Problem("--seed", str(file), rule, fix, code="state-of-another-stack")])
    beside = homes.of_project(project).home.parent  # its cache of schemas is shared
    beside.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        place = opened.enter_context(tempfile.TemporaryDirectory(prefix="seed-", dir=beside))
        home = Rehearsal(Path(place))
        opened.callback(home.stop)
        home.seed([*seeding.rows([*recorded.placed(state.deployment["resources"])], file.name)])
        workspace = _opened(project, home, state.stack, options, to_stderr=to_stderr)
        engine = EngineStack(state.stack, workspace.variables, workspace.folder)
        engine.replace_state(state.deployment)
        step = RehearsalStep(PREVIEW)
        _watch(engine, step, PREVIEW, engine.preview, to_stderr=to_stderr)
        step.changes, secret = recorded.without_secrets(step.changes, state.secrets)
    return ProjectReport(project.name, state.stack, [step], unused=state.unknown, secret=secret)


def _reported(
    project: PulumiProject, report: ProjectReport, options: Options, asserted: Assertions | None
) -> int:
    """Judge the assertions and write the report; returns the exit code."""
    # Where `up` failed, assertions about its end would only repeat that.
    if asserted is not None and report.steps[0].outcome and report.steps[0].outcome.succeeded:
        report.assertions = assertions.judge(asserted, report.observed)
    report.requires = dependencies.other_versions(project.folder)
    if options.report == "text":
        text.show(new_console(), project.folder, report)
    else:
        sys.stdout.write(forms.write(report, options.report) + "\n")
    return 0 if report.passed else 1


def _refuse_report(options: Options, arguments: Sequence[str]) -> None:
    given = {
        "--report": options.report != "text",
        "--assertions": options.assertions is not None,
        "--seed": options.seed is not None,
    }
    rule, fix = "is an option of the whole rehearsal", "Leave out the Pulumi command after `--`."
    problems = [
        Problem(name, None, rule, fix, code="option-conflict") for name, is_given in given.items() if is_given
    ]
    if problems and arguments:
        raise UserError(problems)


def _refuse_missing(project: PulumiProject) -> None:
    problems = []
    folders = dependencies.local_packages(project.folder)
    missing = dependencies.missing_modules(project.program, folders)
    for module, file in missing.items():
        package = dependencies.distribution(project.folder, module)
        emulated = ", ".join(PACKAGES)
        fix = f"Install it: uv pip install --python {sys.executable} {package}"
        if module.startswith("pulumi_"):
            fix += f" (the rehearsal emulates {emulated}; resources of other packages are not supported)"
        path, rule = f"import {module} in {file}", "is not installed"
        problems.append(Problem(path, package, rule, f"{fix}.", code="program-module-missing"))
    if problems:
        raise UserError(problems)


def _set(cli: Cli, workspace: Workspace, setting: str) -> None:
    key, separator, value = setting.partition("=")
    if not separator:
        fix = "Write it as key=value, such as aws:region=us-east-1."
        raise UserError([Problem("--config", setting, "is not a setting", fix, code="config-not-a-setting")])
    command = [cli.path, "config", "set", "--non-interactive", "--plaintext", key, "--", value]
    made = subprocess.run(
        command, cwd=workspace.folder, env=workspace.variables, check=False, capture_output=True, text=True
    )
    if made.returncode:
        rule, fix = made.stderr.strip(), "See `pulumi config set`."
        raise UserError([Problem("--config", setting, rule, fix, code="config-refused-by-pulumi")])


def _life(
    project: PulumiProject, engine: EngineStack, rehearsal: Rehearsal, *, to_stderr: bool
) -> ProjectReport:
    """Create, check that a second update changes nothing, and delete, also after an error."""
    up, again, down = RehearsalStep(UP), RehearsalStep(UNCHANGED), RehearsalStep(DESTROY)
    _watch(engine, up, f"up {project.name}", engine.up, to_stderr=to_stderr)
    if up.outcome and up.outcome.succeeded:
        _watch(engine, again, UNCHANGED, engine.up, to_stderr=to_stderr)
    _watch(engine, down, DESTROY, engine.destroy, to_stderr=to_stderr)
    left = rehearsal.count(f"::{project.name}::")
    return ProjectReport(project.name, engine.name, (up, again, down), left)


def _watch(
    engine: EngineStack,
    step: RehearsalStep,
    title: str,
    operation: Callable[[OnEvent], OperationOutcome],
    *,
    to_stderr: bool,
) -> None:
    """Run an operation; the step gets its events and its outcome."""

    def run(on_event: OnEvent) -> OperationOutcome:
        def take(event: EngineEvent) -> None:
            step.take(event)
            on_event(event)

        return operation(take)

    step.outcome = watched(engine, title, run, to_stderr=to_stderr)
    if step.outcome.interrupted:
        raise _InterruptedError
