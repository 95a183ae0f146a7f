"""`trainstack rehearse run`: another Pulumi project in the emulated clouds, from nothing to nothing."""

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer
from pulumi.automation.events import EngineEvent, OpType
from rich.console import Console

from infra.cli.recovery import alone
from infra.cli.watch import watched
from infra.engine.install import ROOT, Cli, require
from infra.engine.stack import EngineStack, OnEvent, Outcome
from infra.errors import Problem, UserError
from rehearsal import project as projects
from rehearsal.client import HELPERS, PACKAGES, Rehearsal
from rehearsal.core import coverage, needs

INTERRUPTED_EXIT_CODE = 130


@dataclass
class Report:
    """What is told at the end."""

    project: str
    up: Outcome
    again: Outcome | None
    down: Outcome
    types: set[str] = field(default_factory=set)
    left: int = 0
    unsteady: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether it was created, then left alone, then deleted without a rest."""
        steady = self.again is not None and self.again.succeeded and self.again.changed == 0
        return self.up.succeeded and steady and self.down.succeeded and not self.left


def run(folder: Path, stack: str, settings: Sequence[str], arguments: Sequence[str]) -> int:
    """Run a Pulumi command on the project, or without one: up, up again, destroy. Returns the exit code."""
    project = projects.read(folder)
    _refuse_missing(project)
    rehearsal, cli = home_of(project.name), require()
    environment = {
        **rehearsal.environment(),
        "KUBECONFIG": str(rehearsal.kubeconfig()),
        "PATH": os.pathsep.join([cli.folder, os.environ.get("PATH", os.defpath)]),
    }
    stack = project.choose(stack)
    workspace = projects.prepare(project, stack, rehearsal.home, cli.path, environment)
    for setting in settings:
        _set(cli, workspace, setting)
    console = Console()
    for key in workspace.unreadable:
        told = f"secret {key} of the stack file is encrypted elsewhere; the rehearsal has no value for it"
        console.print(f"  {told}", markup=False, highlight=False, soft_wrap=True)
    variables = {**os.environ, **workspace.environment}
    with alone(rehearsal, project.name, stack):
        if arguments:
            command = [cli.path, *arguments]
            return subprocess.run(command, cwd=workspace.folder, env=variables, check=False).returncode
        report = _life(project, EngineStack(stack, variables, workspace.folder), rehearsal)
    _tell(console, project, report)
    return 0 if report.passed else 1


def home_of(name: str) -> Rehearsal:
    """The rehearsal of a project, or the one that TRAINSTACK_REHEARSAL_HOME names; several may share it."""
    home = os.environ.get("TRAINSTACK_REHEARSAL_HOME")
    return Rehearsal(Path(home) if home else ROOT / ".trainstack" / "rehearsals" / name)


def _refuse_missing(project: projects.Project) -> None:
    problems = []
    for module, file in needs.missing_modules(project.program).items():
        package = needs.distribution(project.folder, module)
        emulated = ", ".join((*PACKAGES, *HELPERS))
        fix = f"Install it: .venv/bin/uv pip install {package}"
        if module.startswith("pulumi_"):
            fix += f" (the rehearsal emulates {emulated}; resources of other packages it cannot make)"
        problems.append(Problem(f"import {module} in {file}", package, "is not installed", f"{fix}."))
    if problems:
        raise UserError(problems)


def _set(cli: Cli, workspace: projects.Workspace, setting: str) -> None:
    key, separator, value = setting.partition("=")
    if not separator:
        fix = "Write it as key=value, such as aws:region=us-east-1."
        raise UserError([Problem("--config", setting, "is no setting", fix)])
    command = [cli.path, "config", "set", "--non-interactive", "--plaintext", key, "--", value]
    variables = {**os.environ, **workspace.environment}
    made = subprocess.run(
        command, cwd=workspace.folder, env=variables, check=False, capture_output=True, text=True
    )
    if made.returncode:
        raise UserError([Problem("--config", setting, made.stderr.strip(), "See `pulumi config set`.")])


def _life(project: projects.Project, engine: EngineStack, rehearsal: Rehearsal) -> Report:
    """Create, check that nothing changes without a change, delete, whatever went wrong before."""
    types: set[str] = set()
    unsteady: list[str] = []
    up = _step(engine, f"up {project.name}", engine.up, types, [])
    again = _step(engine, "unchanged up", engine.up, types, unsteady) if up.succeeded else None
    down = _step(engine, "destroy", engine.destroy, types, [])
    left = rehearsal.count(f"::{project.name}::")
    return Report(project.name, up, again, down, types, left, unsteady)


def _step(
    engine: EngineStack,
    title: str,
    operation: Callable[[OnEvent], Outcome],
    types: set[str],
    changes: list[str],
) -> Outcome:
    """Run an operation; gather the types that it sees, and what it changes with what differs."""

    def run(on_event: OnEvent) -> Outcome:
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
        raise typer.Exit(INTERRUPTED_EXIT_CODE)
    return outcome


def _tell(console: Console, project: projects.Project, report: Report) -> None:
    def line(name: str, text: str) -> None:
        console.print(f"  {name:14} {text}", markup=False, highlight=False, soft_wrap=True)

    verdict = "[bold green]passes[/]" if report.passed else "[bold red]does not pass[/]"
    console.print(f"\n[bold]{report.project}[/] {verdict} the rehearsal")
    steps = {"up": report.up, "unchanged up": report.again, "destroy": report.down}
    for title, outcome in steps.items():
        line(title, _outcome(outcome))
        for error in outcome.errors if outcome else ():
            line("", error)
    if report.again and report.again.succeeded and report.again.changed:
        line("", f"{report.again.changed} resources change although nothing was changed:")
        for change in report.unsteady:
            line("", change)
    if report.left:
        line("left behind", f"{report.left} resources in the emulated clouds")
    errors = [error for outcome in steps.values() if outcome for error in outcome.errors]
    if any("Missing re" in error for error in errors):
        line("next", f"trainstack rehearse run {project.folder} --config KEY=VALUE")
    names = coverage.lacking(errors)
    line("not emulated", ", ".join(names) or "nothing that it uses")
    generic = coverage.by_schema_only(report.types)
    if generic:
        line("schema only", ", ".join(generic))
    others = needs.other_versions(project.folder)
    if others:
        line("asks for", ", ".join(others))


def _outcome(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not tried"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.changes.items()))
    return f"{'done' if outcome.succeeded else 'failed'} in {outcome.seconds:.1f} s: {counts or 'nothing'}"
