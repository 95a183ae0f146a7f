"""Report of a rehearsal as text."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console

from infra.engine.stack import OperationOutcome
from rehearsal.projects import coverage
from rehearsal.projects.coverage import Standing
from rehearsal.projects.reports.model import UNCHANGED, ProjectReport

_MOST = 20
"""Changes and types that a line shows."""

# Message of Pulumi's file backend for a stack reference (pkg/backend/diy/store.go), and what to do about it.
_ORGANIZATION = "organization name must be 'organization'"
_OTHER_ORGANIZATION = (
    "in a rehearsal, as with every state that is in files, the one organization is named organization: "
    "write the name of a StackReference with pulumi.get_organization() (getOrganization in Node.js and Go), "
    "or take it from a setting: --config KEY=organization/PROJECT/STACK",
    "rehearse the project that it reads before, in the same home: TRAINSTACK_REHEARSAL_HOME=FOLDER",
)


def show(console: Console, folder: Path, report: ProjectReport) -> None:
    """Print the verdict, the changes of each step, the assertions, and what is not emulated."""

    def line(name: str, text: str) -> None:
        console.print(f"  {name:14} {text}", markup=False, highlight=False, soft_wrap=True)

    verdict = "[bold green]passes[/]" if report.passed else "[bold red]does not pass[/]"
    console.print(f"\n[bold]{report.project}[/] {verdict} the rehearsal")
    for step in report.steps:
        line(step.name, outcome_line(step.outcome))
        for error in step.outcome.errors if step.outcome else ():
            line("", error)
        shown = [one for one in step.changes if one.operation in ("replace", "delete")]
        if step.name == UNCHANGED and step.outcome and step.outcome.succeeded and step.outcome.changed:
            line("", f"{step.outcome.changed} resources change although nothing was changed:")
            shown = step.changes
        for change in shown[:_MOST] if step.name in ("preview", UNCHANGED) else ():
            line("", str(change))
        if len(shown) > _MOST and step.name in ("preview", UNCHANGED):
            line("", f"and {len(shown) - _MOST} more: --report json has all")
    for name, found in _remarks(report):
        line(name, found)
    for one in report.assertions:
        line("holds" if one.passed else "does not hold", one.name)
        if not one.passed:
            line("", f"{one.path}: {one.found}")
    for hint in _hints(folder, report):
        line("next", hint)
    line("not emulated", ", ".join(coverage.lacking(report.errors)) or "nothing that it uses")
    for standing, types in report.standings.items():
        line(standing.value, standing_line(standing, types))
    for pin in report.pins:
        line("pinned", pin)
    if report.requires:
        line("requires", ", ".join(report.requires))


def _remarks(report: ProjectReport) -> Iterator[tuple[str, str]]:
    """Changes of which not all is known; resources that the program left, or that a seed left out."""
    if report.unsure:
        yield "may replace", f"{len(report.unsure)} updates: {'; '.join(report.unsure[:_MOST])}"
    if report.left:
        yield "left behind", f"{report.left} resources in the emulated clouds"
    if report.unused:
        names = ", ".join(f"{name} ({count})" for name, count in report.unused.items())
        yield "left out", f"{sum(report.unused.values())} resources of the state: {names}"
    if report.secret:
        yield "only secrets", f"whether they change is not known: {', '.join(report.secret)}"


def _hints(folder: Path, report: ProjectReport) -> Iterator[str]:
    """Next steps for errors that have one."""
    if any("Missing re" in error for error in report.errors):
        yield f"trainstack rehearse run {folder} --config KEY=VALUE"
    if any(_ORGANIZATION in error for error in report.errors):
        yield from _OTHER_ORGANIZATION


def standing_line(standing: Standing, types: Mapping[str, int]) -> str:
    """The number of types and resources of a standing; the names too where they are not emulated."""
    if not types:
        return "no type"
    counted = f"{len(types)} types, {sum(types.values())} resources"
    if standing is Standing.EMULATED:
        return counted
    return f"{counted}: {', '.join(f'{name} ({count})' for name, count in types.items())}"


def outcome_line(outcome: OperationOutcome | None) -> str:
    """The result, duration and changes of an operation."""
    if outcome is None:
        return "not tried"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.changes.items()))
    return f"{'done' if outcome.succeeded else 'failed'} in {outcome.seconds:.1f} s: {counts or 'nothing'}"
