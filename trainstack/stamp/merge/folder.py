"""Merge of a client's folder: the rendering before, the rendering now and the files as they are."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path

from infra.errors import Problem, UserError
from infra.places import STATE_NAME
from trainstack.stamp import lock
from trainstack.stamp.merge.by_key import merged
from trainstack.stamp.merge.outcome import Labels, MergedText

_YAML = (".yaml", ".yml")
_ALIKE = 0.6
"""Least likeness of a file that a missing one may have been renamed to."""
_MOST_CANDIDATES, _MOST_BYTES = 200, 1 << 20


class KeepReason(StrEnum):
    """Reasons why a file of the template is not as the template has it."""

    DELETED = "deleted-by-you"
    YOURS = "exists-already"
    DROPPED = "dropped-by-template"
    """The template no longer has it; edited by the client, so it stays."""


@dataclass(frozen=True)
class KeptFile:
    """A file that stays as the client has it although the template changed."""

    reason: KeepReason
    renamed_to: str = ""
    """Of a deleted file, another one that is like it."""


@dataclass(frozen=True)
class FolderMerge:
    """The merged files; nothing is written."""

    before: Mapping[str, str | None]
    """Texts in the folder, by name; None where there is none."""
    files: Mapping[str, MergedText | None]
    """Merged texts; None where a file goes."""
    base: Mapping[str, str]
    """The rendering now, without the files that were the client's own before it."""
    kept: Mapping[str, KeptFile] = field(default_factory=dict)

    @property
    def conflicts(self) -> Mapping[str, MergedText]:
        """The files with conflicts."""
        return {name: one for name, one in self.files.items() if one and one.conflicts}

    def changes(self, labels: Labels) -> dict[str, str | None]:
        """New texts of the files that change, with markers at conflicts; None where a file goes."""
        return self._changed({name: one.text(labels) if one else None for name, one in self.files.items()})

    @property
    def settled(self) -> dict[str, str | None]:
        """New texts of the files that change, with the client's version at conflicts."""
        return self._changed({name: one.with_yours if one else None for name, one in self.files.items()})

    def _changed(self, texts: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: text for name, text in texts.items() if text != self.before[name]}


def merged_folder(
    folder: Path,
    base: Mapping[str, str],
    template: Mapping[str, str],
    migrate: Callable[[str, str], str] = lambda _, text: text,
) -> FolderMerge:
    """Merge the files of both renderings; `migrate` brings texts, by name, to the form of the newer one.

    Raises UserError for files that cannot be merged.
    """
    before: dict[str, str | None] = {}
    problems: list[Problem] = []
    for name in sorted({*base, *template}):
        try:
            before[name] = text_of(folder, name)
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    base = {name: migrate(name, text) for name, text in base.items()}
    files: dict[str, MergedText | None] = {}
    kept: dict[str, KeptFile] = {}
    for name, mine in before.items():
        migrated = None if mine is None else migrate(name, mine)
        found = _merged(name, base.get(name), migrated, template.get(name))
        if isinstance(found, KeepReason):
            kept[name] = KeptFile(found)
        else:
            files[name] = found
    missing = [name for name, one in kept.items() if one.reason is KeepReason.DELETED]
    for name, other in _renamed(folder, {name: base[name] for name in missing}, {*base, *template}):
        kept[name] = KeptFile(KeepReason.DELETED, other)
    own = {name for name, one in kept.items() if one.reason is KeepReason.YOURS}
    return FolderMerge(
        before, files, {name: text for name, text in template.items() if name not in own}, kept
    )


def _merged(
    name: str, base: str | None, mine: str | None, template: str | None
) -> MergedText | KeepReason | None:
    """The merge of one file: text, None where there is none, or the reason why it stays."""
    if mine is None:
        if base is None:
            return MergedText([template or ""])
        return KeepReason.DELETED if template not in (None, base) else None
    if base is None:
        return MergedText([mine]) if mine == template else KeepReason.YOURS
    if template == base:
        return MergedText([mine])
    if template is None:
        return None if mine == base else KeepReason.DROPPED
    return merged(base, mine, template, yaml=name.endswith(_YAML))


def text_of(folder: Path, name: str) -> str | None:
    """The text of a client's file with line feeds alone; None without the file.

    Raises UserError for what is no file in the folder itself: a link could lead out of it.
    """
    path = folder / name
    inside = [one for one in path.parents if folder in one.parents]
    linked = any(one.is_symlink() for one in (path, *inside))
    if (
        linked
        or any(one.exists() and not one.is_dir() for one in inside)
        or (path.exists() and not path.is_file())
    ):
        rule, fix = "is no file in a folder, or is below a link", "Replace it with a file, or remove it."
        raise UserError([Problem(name, None, rule, fix, code="client-file-not-regular")])
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        rule, fix = f"cannot be read as text: {error}", "Save it as UTF-8 that you can read, or remove it."
        raise UserError([Problem(name, None, rule, fix, code="client-file-unreadable")]) from None


def _renamed(folder: Path, missing: Mapping[str, str], known: set[str]) -> Iterator[tuple[str, str]]:
    """Missing files with the file that is most like each, if one is."""
    candidates = dict(_candidates(folder, known)) if missing else {}
    for name, text in missing.items():
        likeness = {
            other: difflib.SequenceMatcher(None, text.splitlines(), own.splitlines()).ratio()
            for other, own in candidates.items()
        }
        best = max(likeness, key=lambda other: (likeness[other], other), default="")
        if best and likeness[best] >= _ALIKE:
            yield name, best


def _candidates(folder: Path, known: set[str]) -> Iterator[tuple[str, str]]:
    """Other files of the folder, up to a number and a size."""
    for path in islice(_others(folder, known), _MOST_CANDIDATES):
        with suppress(OSError, UnicodeDecodeError):
            yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


def _others(folder: Path, known: set[str]) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted({*folders} - {lock.FOLDER, STATE_NAME, ".git"})
        for path in (Path(place, name) for name in sorted(files)):
            is_known = path.relative_to(folder).as_posix() in known
            if not is_known and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
                yield path
