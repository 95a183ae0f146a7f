"""`trainstack rehearse run`: a Pulumi project in the emulated clouds, created, checked and deleted."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pulumi.automation.events import EngineEvent, OpType

from infra.engine.console import new_console
from infra.engine.install import Cli, require
from infra.engine.progress import watched
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.errors import Problem, UserError
from rehearsal.client import Rehearsal
from rehearsal.core.packages import PACKAGES
from rehearsal.projects import dependencies, homes
from rehearsal.projects import report as reports
from rehearsal.projects import workspace as workspaces
from rehearsal.projects.project import PYTHON, PulumiProject, read
from rehearsal.projects.report import ProjectReport
from rehearsal.projects.workspace import Workspace
from rehearsal.recovery import alone

INTERRUPTED_EXIT_CODE = 130


class _InterruptedError(Exception):
    """Ctrl-C ended a step."""


def run(folder: Path, stack: str, settings: Sequence[str], arguments: Sequence[str]) -> int:
    """Run a Pulumi command on the project, or without one: up, up again, destroy. Returns the exit code."""
    project = read(folder)
    if project.language == PYTHON:
        _refuse_missing(project)
    rehearsal, cli, stack = homes.of_project(project), require(), project.choose(stack)
    workspace = workspaces.of_project(project, stack, rehearsal, cli.path)
    for setting in settings:
        _set(cli, workspace, setting)
    console = new_console()
    for line in workspace.notes:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    with alone(rehearsal, project.name, stack):
        if arguments:
            command = [cli.path, *arguments]
            return subprocess.run(
                command, cwd=workspace.folder, env=workspace.variables, check=False
            ).returncode
        try:
            report = _life(project, EngineStack(stack, workspace.variables, workspace.folder), rehearsal)
        except _InterruptedError:
            return INTERRUPTED_EXIT_CODE
    reports.show(console, project, report)
    return 0 if report.passed else 1


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


def _life(project: PulumiProject, engine: EngineStack, rehearsal: Rehearsal) -> ProjectReport:
    """Create, check that a second update changes nothing, and delete, also after an error."""
    types: set[str] = set()
    unsteady: list[str] = []
    up = _step(engine, f"up {project.name}", engine.up, types, [])
    again = _step(engine, "unchanged up", engine.up, types, unsteady) if up.succeeded else None
    down = _step(engine, "destroy", engine.destroy, types, [])
    left = rehearsal.count(f"::{project.name}::")
    return ProjectReport(project.name, up, again, down, types, left, unsteady)


def _step(
    engine: EngineStack,
    title: str,
    operation: Callable[[OnEvent], OperationOutcome],
    types: set[str],
    changes: list[str],
) -> OperationOutcome:
    """Run an operation; collect resource types and changes with their differences."""

    def run(on_event: OnEvent) -> OperationOutcome:
        def take(event: EngineEvent) -> None:
            if event.resource_pre_event:
                made = event.resource_pre_event.metadata
                types.add(made.type)
                if made.op in (OpType.CREATE, OpType.UPDATE, OpType.REPLACE, OpType.DELETE):
                    differing = f" ({', '.join(made.diffs)})" if made.diffs else ""
                    changes.append(f"{made.op.value} {made.urn.rpartition('::')[2]}{differing}")
            on_event(event)

        return operation(take)

    outcome = watched(engine, title, run)
    if outcome.interrupted:
        raise _InterruptedError
    return outcome
