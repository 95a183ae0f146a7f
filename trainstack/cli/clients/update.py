"""`trainstack update`: merge a client's folder with the rendering of the installed version."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import Problem, UserError, collected, raise_all
from infra.exit_codes import ExitCode
from trainstack.cli.output import Format, FormatOption, print_json, print_lines, require_terminal

if TYPE_CHECKING:
    from trainstack.cli.clients.update_report import UpdateReport
    from trainstack.stamp.renewal import Renewal

SCHEMA = "trainstack.update/1"
Client = Annotated[
    Path | None, typer.Argument(metavar="CLIENT", help="Folder of the client; default: the one around.")
]
To = Annotated[
    str,
    typer.Option(
        "--to", help="Version to update to; where another one runs, the command names how to get this one."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes, and make none.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change without confirmation.")]
Conflicts = Annotated[
    bool, typer.Option("--conflicts", help="Write files with conflicts, too, with markers in them.")
]
Prove = Annotated[
    bool,
    typer.Option(
        "--prove",
        help="Run the new program against the state of each deployed stack, in a rehearsal; show what it "
        "updates, replaces and drains.",
    ),
]
State = Annotated[
    list[Path] | None,
    typer.Option(
        "--state",
        help="With --prove: file of `pulumi stack export --file FILE`; default: read from the backend.",
        metavar="FILE",
    ),
]
Older = Annotated[
    Path | None,
    typer.Option(
        "--older",
        help="With --prove: environment of the version that deployed the stacks; its own steps are pending.",
        metavar="DIR",
    ),
]
Approve = Annotated[
    list[str] | None,
    typer.Option("--approve", help="With --prove: accept the end of a resource with data.", metavar="NAME"),
]
Dirty = Annotated[bool, typer.Option("--dirty", help="Accept changes that are not committed.")]


def update(
    client: Client = None,
    *,
    to: To = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    conflicts: Conflicts = False,
    dirty: Dirty = False,
    prove: Prove = False,
    state: State = None,
    older: Older = None,
    approve: Approve = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Bring a client's folder to the installed version; what the client edited stays.

    Shows changed files, values of stacks and prices first. A conflict writes nothing without --conflicts.
    With --prove, a replacement or deletion of a resource with data writes nothing without --approve.
    """
    from trainstack.cli.clients.update_report import UpdateReport  # noqa: PLC0415
    from trainstack.stamp import environment, renewal, transaction, worktree  # noqa: PLC0415
    from trainstack.stamp.effects import effects  # noqa: PLC0415

    problems = list[Problem]()
    with collected(problems):
        folder = _folder(client)
    with collected(problems):
        _require_version(to)
    with collected(problems):
        _require_prove(prove, {"--state": state, "--older": older, "--approve": approve})
    raise_all(problems)
    with transaction.exclusive(folder):
        if not dry_run and (finished := transaction.recover(folder)):
            typer.echo(f"Finished an update that was killed: {len(finished)} files", err=True)
        if not (dry_run or dirty):
            worktree.require_clean(folder)
        found = renewal.prepared(folder, _rendered)
        settled, today = found.merge.settled, datetime.date.today()
        shown = [] if found.unresolved else effects(folder, settled, today, found.merge.conflicts)
        report = UpdateReport(folder, found, shown)
        decided = not found.unresolved and (conflicts or not (found.merge.conflicts or report.broken))
        if prove and decided and not found.merge.conflicts:
            report = _proven(report, settled, state or (), older, approve or ())
        stopped = not decided or bool(report.missing or report.errors)
        writes = not (dry_run or stopped or found.is_current)
        if writes and not yes:
            require_terminal()
        if form is Format.TEXT or (writes and not yes):
            print_lines(report.lines(), err=form is Format.JSON)
        if writes and not yes:
            typer.confirm(f"Write {len(found.changes)} files into {folder}?", abort=True, err=True)
        if writes:
            found.write(folder)
            environment.link(folder)
    if form is Format.JSON:
        print_json(SCHEMA, report.document(written=writes))
    if stopped:
        _stop(report)
    if form is Format.TEXT:
        typer.echo(_end(found, written=writes))


def _stop(report: "UpdateReport") -> None:
    """Raise what ends an update that writes nothing."""
    if unresolved := report.found.unresolved:
        names = ", ".join(f"{name}:{line}" for name, line in unresolved.items())
        typer.echo(f"Nothing was written. Resolve the conflicts, remove their markers: {names}", err=True)
    elif report.found.merge.conflicts:
        typer.echo("Nothing was written. Add --conflicts to get files with markers in them.", err=True)
    elif report.missing:
        names = " ".join(f"--approve {name}" for name in report.missing)
        typer.echo(f"Nothing was written: resources with data end. To accept it: {names}", err=True)
    elif report.broken:
        raise UserError(report.broken)
    raise typer.Exit(ExitCode.FAILED)


def _require_prove(prove: bool, given: Mapping[str, object]) -> None:
    """Raise UserError for options of a proof without one, and where none is possible."""
    from rehearsal.projects.homes import require_linux  # noqa: PLC0415

    if prove:
        require_linux("--prove")
    problems = [
        Problem(name, None, "is an option of a proof", "Add --prove.", code="option-needs-prove")
        for name, value in given.items()
        if value and not prove
    ]
    if problems:
        raise UserError(problems)


def _proven(
    report: "UpdateReport",
    changes: Mapping[str, str | None],
    files: Sequence[Path],
    older: Path | None,
    approved: Sequence[str],
) -> "UpdateReport":
    """The report with the replays of all deployed stacks. Raises UserError for states that cannot be used."""
    from trainstack.replay import runs  # noqa: PLC0415

    installation = runs.older_installation(older) if older else None
    states, empty = runs.states(report.folder, files)
    replays = [runs.replayed(one, report.folder, changes, installation) for one in states]
    return replace(report, replays=replays, approved=approved, unproven=empty)


def _folder(client: Path | None) -> Path:
    from infra import places  # noqa: PLC0415
    from trainstack.stamp import lock  # noqa: PLC0415

    folder = client or places.client_folder()
    if folder is None or not (any(folder.glob("Pulumi.*.yaml")) or (folder / lock.FOLDER).is_dir()):
        rule, fix = "is not the folder of a client", "Name one, or run it in one."
        value = None if client is None else str(client)
        raise UserError([Problem("CLIENT", value, rule, fix, code="no-client-folder")])
    return folder.resolve()


def _require_version(to: str) -> None:
    """Raise UserError for a version that is not installed, with the commands that install it and run it."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    from infra import installation  # noqa: PLC0415
    from trainstack import extras  # noqa: PLC0415
    from trainstack.stamp import lock  # noqa: PLC0415

    if not to or to == lock.installed():
        return
    try:
        Version(to)
    except InvalidVersion:
        rule, fix = "must be a version", f"Such as: {lock.installed()}, which is installed."
        raise UserError([Problem("--to", to, rule, fix, code="version-invalid")]) from None
    rule = f"{lock.installed()} runs, and a version renders its own files alone"
    words = f"update --to {to}"
    fix = f"Install it: {extras.installation_of(to)}; then repeat the command."
    if once := installation.once(to, f"{words} --dry-run"):
        fix += f" Without installing it, to see the changes: `{once}`."
    raise UserError([Problem("--to", to, rule, fix, code="another-version-installed")])


def _rendered(answers: Any) -> Any:
    from trainstack.stamp import choices, client  # noqa: PLC0415

    return client.render(choices.of_answers(answers)).texts


def _end(found: "Renewal", *, written: bool) -> str:
    if found.is_current:
        return f"Nothing to do: {found.new.version}"
    if not written:
        return f"Would write {len(found.changes)} files, and the lock"
    marked = f"; resolve the markers in {', '.join(found.merge.conflicts)}" if found.merge.conflicts else ""
    return f"Wrote {len(found.changes)} files, and the lock{marked}"
