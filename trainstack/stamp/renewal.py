"""The update of a client's folder to the installed version: what it would change, and the change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from infra.conflict_markers import first_line
from infra.errors import Problem, UserError
from trainstack.stamp import lock, migrations, transaction
from trainstack.stamp.lock import Stamp
from trainstack.stamp.merge.folder import FolderMerge, merged_folder, text_of
from trainstack.stamp.merge.outcome import Labels, MergedText
from trainstack.stamp.migrations import STEPS, MigrationStep

Render = Callable[[Mapping[str, JsonValue]], Mapping[str, str]]
"""Texts by name in the client's folder, from the answers of a lock."""


@dataclass(frozen=True)
class Renewal:
    """A merge of a client's folder with the rendering of the installed version; nothing is written."""

    old: Stamp
    new: Stamp
    merge: FolderMerge
    steps: Sequence[MigrationStep]

    @property
    def labels(self) -> Labels:
        """Names of the three texts in markers."""
        return Labels("yours", f"trainstack {self.old.version}", f"trainstack {self.new.version}")

    @property
    def changes(self) -> dict[str, str | None]:
        """New texts of the client's files, with markers at conflicts; None where one goes."""
        return self.merge.changes(self.labels)

    @property
    def unresolved(self) -> dict[str, int]:
        """Files of the client that have markers of conflicts, with the line of the first ones."""
        found = {name: first_line(text or "") for name, text in self.merge.before.items()}
        return {name: line for name, line in found.items() if line}

    @property
    def is_current(self) -> bool:
        """True where nothing is to be written, not even the lock."""
        return not self.changes and self.old == self.new

    def write(self, folder: Path) -> None:
        """Write files, base and lock: all or none. Raises UserError where a file was changed meanwhile."""
        old, new = (lock.files(stamp) for stamp in (self.old, self.new))
        recorded = {name: text for name, text in new.items() if old.get(name) != text}
        gone: dict[str, str | None] = dict.fromkeys(old.keys() - new.keys())
        transaction.apply(folder, self.merge.before, {**self.changes, **recorded, **gone})


def prepared(folder: Path, render: Render, *, steps: Sequence[MigrationStep] = STEPS) -> Renewal:
    """Merge a client's folder with a new rendering of its answers.

    Raises UserError for a lock, an answer or a file that cannot be used.
    """
    if transaction.interrupted(folder):
        rule, fix = "an update was killed while it wrote", "Run `trainstack update` without --dry-run first."
        raise UserError([Problem("CLIENT", str(folder), rule, fix, code="client-update-interrupted")])
    old = lock.read(folder)
    template = render(old.answers)
    due = migrations.pending(old.version, lock.installed(), steps)
    migrate = partial(migrations.migrated, steps=due)
    merge = merged_folder(folder, old.texts, template, migrate)
    new = replace(old, version=lock.installed(), texts=merge.base)
    return Renewal(old, new, _with_own(folder, merge, migrate) if due else merge, due)


def _with_own(folder: Path, merge: FolderMerge, migrate: Callable[[str, str], str]) -> FolderMerge:
    """The merge with migrated files that the template does not have, such as stacks of the client's own."""
    names = {
        path.relative_to(folder).as_posix()
        for pattern in migrations.SPEC_FILES
        for path in folder.glob(pattern)
    }
    before, files = dict(merge.before), dict(merge.files)
    for name in sorted(names - before.keys()):
        text = text_of(folder, name)
        if text is not None:
            before[name], files[name] = text, MergedText([migrate(name, text)])
    return replace(merge, before=before, files=files)
