"""`trainstack update`: merge a client's folder with the rendering of the installed version."""

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack.cli.output import Format, FormatOption, print_json, print_lines, require_terminal

if TYPE_CHECKING:
    from trainstack.stamp.effects import StackEffect
    from trainstack.stamp.renewal import Renewal

SCHEMA = "trainstack.update/1"
_MOST_VALUES = 20
_KEPT = {
    "deleted-by-you": "you deleted it; the template's change of it is not applied",
    "exists-already": "yours; the template has a new file of that name, which is not written",
    "dropped-by-template": "the template no longer has it; you edited it, so it stays",
}
_NOTES = {
    "removed-by-you": "you removed it; the template's change of it is not applied",
    "edited-by-you": "the template no longer has it; you edited it, so it stays",
    "comment-edited-by-you": "you and the template changed its comment; yours stays",
}
Client = Annotated[
    Path | None, typer.Argument(metavar="[CLIENT]", help="Folder of the client; default: the one around.")
]
To = Annotated[
    str, typer.Option("--to", help="Version to update to; refused where another one is installed.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes, and make none.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change without confirmation.")]
Conflicts = Annotated[
    bool, typer.Option("--conflicts", help="Write files with conflicts, too, with markers in them.")
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
    form: FormatOption = Format.TEXT,
) -> None:
    """Bring a client's folder to the installed version; what the client edited stays.

    Shows changed files, values of stacks and prices first. A conflict writes nothing without --conflicts.
    """
    from trainstack.stamp import environment, renewal, transaction, worktree  # noqa: PLC0415
    from trainstack.stamp.effects import effects  # noqa: PLC0415

    folder = _folder(client)
    _require_version(to)
    with transaction.exclusive(folder):
        if not dry_run and (finished := transaction.recover(folder)):
            typer.echo(f"Finished an update that was killed: {len(finished)} files", err=True)
        if not (dry_run or dirty):
            worktree.require_clean(folder)
        found = renewal.prepared(folder, _rendered)
        settled = {name: text for name, text in found.changes.items() if name not in found.merge.conflicts}
        changed = effects(folder, settled, datetime.date.today())
        stopped = bool(found.merge.conflicts) and not conflicts
        broken = [problem for one in changed for problem in one.broken]
        stopped = stopped or (bool(broken) and not conflicts)
        writes = not (dry_run or stopped or found.is_current)
        if form is Format.JSON and writes and not yes:
            require_terminal()
        if form is Format.TEXT:
            print_lines(_lines(folder, found, changed))
        if writes and not yes:
            require_terminal()
            typer.confirm(f"Write {len(found.changes)} files into {folder}?", abort=True, err=True)
        if writes:
            found.write(folder)
            environment.link(folder)
    if form is Format.JSON:
        print_json(SCHEMA, _document(folder, found, changed, written=writes))
    if stopped and broken and not found.merge.conflicts:
        raise UserError(broken)
    if stopped:
        typer.echo("Nothing was written. Add --conflicts to get files with markers in them.", err=True)
        raise typer.Exit(ExitCode.FAILED)
    if form is Format.TEXT:
        typer.echo(_end(found, written=writes))


def _folder(client: Path | None) -> Path:
    from infra import places  # noqa: PLC0415

    folder = client or places.client_folder()
    if folder is None or not folder.is_dir():
        rule, fix = "is not the folder of a client", "Name one, or run it in one."
        value = None if client is None else str(client)
        raise UserError([Problem("CLIENT", value, rule, fix, code="no-client-folder")])
    return folder.resolve()


def _require_version(to: str) -> None:
    from trainstack.stamp import lock  # noqa: PLC0415

    if to and to != lock.installed():
        rule = f"{lock.installed()} is installed, and only the installed version renders"
        fix = f"Install it: `uv tool install 'trainstack=={to}'`, or the same with pipx."
        raise UserError([Problem("--to", to, rule, fix, code="another-version-installed")])


def _rendered(answers: Any) -> Any:
    from trainstack.stamp import choices, client  # noqa: PLC0415

    return client.render(choices.of_answers(answers)).texts


def _lines(folder: Path, found: "Renewal", changed: "list[StackEffect]") -> Iterator[str]:
    if found.is_current:
        return
    yield f"{folder.name}: {found.old.version} to {found.new.version}"
    yield from (f"  step    {one.name}" for one in found.steps)
    for effect in changed:
        yield from _effect_lines(effect)
    yield from (f"  {kind:<7} {name}" for name, kind in _kinds(found))
    for name, kept in found.merge.kept.items():
        more = f"; it may be {kept.renamed_to} now" if kept.renamed_to else ""
        yield f"  keep    {name}: {_KEPT[kept.reason]}{more}"
    for name, merged in found.merge.files.items():
        for note in merged.notes if merged else ():
            line = f":{note.line}" if note.line else ""
            yield f"  note    {name}{line} {note.key}: {_NOTES[note.reason]}"
    for name, merged in found.merge.conflicts.items():
        for one in merged.conflicts:
            yield f"  conflict {name}:{one.line} {one.key} (line {one.template_line} of the new rendering)"
            for side, text in (("yours", one.yours), ("before", one.base), ("template", one.template)):
                yield from (f"    {side:<9} {line}" for line in text.splitlines() or ["(removed)"])


def _kinds(found: "Renewal") -> Iterator[tuple[str, str]]:
    """Changed files, each with `add`, `change` or `remove`."""
    for name, text in found.changes.items():
        yield name, "remove" if text is None else "add" if found.merge.before[name] is None else "change"


def _effect_lines(effect: "StackEffect") -> Iterator[str]:
    yield f"  stack {effect.stack}"
    for path, before, after in effect.values[:_MOST_VALUES]:
        yield f"    {path}: {before!r} to {after!r}"
    if len(effect.values) > _MOST_VALUES:
        yield f"    and {len(effect.values) - _MOST_VALUES} more values: --format json has all"
    prices = [_usd(price) for price in (effect.before, effect.after)]
    if prices[0] != prices[1]:
        yield f"    $ per month, min / expected / max: {prices[0]} to {prices[1]}"
    yield from (f"    breaks {problem}" for problem in effect.broken)


def _usd(price: Any) -> str:
    if price is None:
        return "unknown"
    return " / ".join(
        f"{figure:,.0f}" for figure in (price.minimum_usd, price.expected_usd, price.maximum_usd)
    )


def _end(found: "Renewal", *, written: bool) -> str:
    if found.is_current:
        return f"Nothing to do: {found.new.version}"
    if not written:
        return f"Would write {len(found.changes)} files, and the lock"
    marked = f"; resolve the markers in {', '.join(found.merge.conflicts)}" if found.merge.conflicts else ""
    return f"Wrote {len(found.changes)} files, and the lock{marked}"


def _document(
    folder: Path, found: "Renewal", changed: "list[StackEffect]", *, written: bool
) -> dict[str, Any]:
    merged = {name: one for name, one in found.merge.files.items() if one}
    return {
        "client": folder.name,
        "from": found.old.version,
        "to": found.new.version,
        "written": written,
        "steps": [one.name for one in found.steps],
        "files": [{"path": name, "change": kind} for name, kind in _kinds(found)],
        "kept": [
            {"path": name, "reason": one.reason, "renamed_to": one.renamed_to or None}
            for name, one in found.merge.kept.items()
        ],
        "notes": [
            {"path": name, **dataclasses.asdict(note)} for name, one in merged.items() for note in one.notes
        ],
        "conflicts": [
            {"path": name, **dataclasses.asdict(one)}
            for name, text in found.merge.conflicts.items()
            for one in text.conflicts
        ],
        "stacks": [
            {
                "stack": one.stack,
                "values": [{"path": path, "before": old, "after": new} for path, old, new in one.values],
                "price_before": one.before,
                "price_after": one.after,
                "broken": [str(problem) for problem in one.broken],
            }
            for one in changed
        ],
    }
