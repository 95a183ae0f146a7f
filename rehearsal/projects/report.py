"""Report after the rehearsal of a project."""

from dataclasses import dataclass, field

from rich.console import Console

from infra.engine.stack import OperationOutcome
from rehearsal.projects import coverage, dependencies
from rehearsal.projects.project import PulumiProject

# Message of Pulumi's file backend for a stack reference (pkg/backend/diy/store.go), and what to do about it.
_ORGANIZATION = "organization name must be 'organization'"
_OTHER_ORGANIZATION = (
    "in a rehearsal, as with every state that is in files, the one organization is named organization: "
    "write the name of a StackReference with pulumi.get_organization() (getOrganization in Node.js and Go), "
    "or take it from a setting: --config KEY=organization/PROJECT/STACK",
    "rehearse the project that it reads before, in the same home: TRAINSTACK_REHEARSAL_HOME=FOLDER",
)


@dataclass
class ProjectReport:
    """Results of a project: `again` is the unchanged second update, `left` counts resources not deleted."""

    project: str
    up: OperationOutcome
    again: OperationOutcome | None
    down: OperationOutcome
    types: set[str] = field(default_factory=set)
    left: int = 0
    unsteady: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True when it was created, then unchanged, then deleted completely."""
        steady = self.again is not None and self.again.succeeded and self.again.changed == 0
        return self.up.succeeded and steady and self.down.succeeded and not self.left


def show(console: Console, project: PulumiProject, report: ProjectReport) -> None:
    """Print the verdict, the changes of each step, and what is not emulated."""

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
    if any(_ORGANIZATION in error for error in errors):
        for hint in _OTHER_ORGANIZATION:
            line("next", hint)
    names = coverage.lacking(errors)
    line("not emulated", ", ".join(names) or "nothing that it uses")
    generic = coverage.by_schema_only(report.types)
    if generic:
        line("schema only", ", ".join(generic))
    others = dependencies.other_versions(project.folder)
    if others:
        line("requires", ", ".join(others))


def _outcome(outcome: OperationOutcome | None) -> str:
    if outcome is None:
        return "not tried"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.changes.items()))
    return f"{'done' if outcome.succeeded else 'failed'} in {outcome.seconds:.1f} s: {counts or 'nothing'}"
