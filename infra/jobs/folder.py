"""Files of a folder that a run takes, by name and size; only ignore files are read."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.errors import Problem, UserError
from infra.jobs.ignore_files import ENVIRONMENT_MARK, IGNORE_FILES, IgnoreFile, ignored, read_patterns
from infra.jobs.private_files import named_like_a_secret

MOST_MB = 200
MOST_FILES = 20_000
_NAMED = 5
_LEADS_OUT = "points outside of the folder, which the job does not have"
_LEAVE_OUT = "add it to .trainstackignore"


@dataclass
class FolderContents:
    """Files of a folder that a run takes; sizes in bytes."""

    files: dict[str, int] = field(default_factory=dict)
    """Size by path below the folder, with `/` as separator."""
    links: dict[str, str] = field(default_factory=dict)
    """Links inside the folder, with their targets."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Size of all files."""
        return sum(self.files.values())


def survey(folder: Path) -> FolderContents:
    """The files of `folder` that a run takes. Raises UserError with all problems."""
    if not folder.is_dir():
        raise UserError([_no_folder(folder)])
    found = FolderContents()
    for path, entry in _walk(folder, "", []):
        _take(found, folder, path, entry)
        if len(found.files) > MOST_FILES:
            fix = f"Choose the folder of the script itself, or {_LEAVE_OUT} what the run does not need."
            rule = "too many files"
            raise UserError(
                [Problem(str(folder), f"over {MOST_FILES} files", rule, fix, code="too-many-files")]
            )
    if found.size > MOST_MB * 1e6:
        found.problems.append(_too_large(folder, found))
    if found.problems:
        raise UserError(found.problems)
    return found


def _no_folder(folder: Path) -> Problem:
    if folder.is_file():
        fix = f"Name its folder: {folder.parent} --script {folder.name}."
        return Problem(str(folder), None, "is a file; a run takes a folder", fix, code="folder-is-file")
    rule, fix = "there is no such folder", "Name the folder with your train.py."
    return Problem(str(folder), None, rule, fix, code="folder-not-found")


def _take(found: FolderContents, folder: Path, path: str, entry: os.DirEntry[str]) -> None:
    if named_like_a_secret(path):
        rule = "looks like a secret; readers of the bucket could read it"
        fix = f"Remove it, or {_LEAVE_OUT}; scripts have the permissions of the job's role."
        found.problems.append(Problem(path, None, rule, fix, code="file-like-secret"))
        return
    if entry.is_symlink():
        target = Path(entry.path).readlink()
        if not target.is_absolute() and _inside(Path(entry.path), folder):
            found.links[path] = str(target)
        else:
            fix = f"Replace it by a copy, or {_LEAVE_OUT}."
            found.problems.append(Problem(path, str(target), _LEADS_OUT, fix, code="link-leaves-folder"))
        return
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        found.files[path] = status.st_size
    else:
        rule, fix = "is not a regular file", f"Please {_LEAVE_OUT}."
        found.problems.append(Problem(path, None, rule, fix, code="not-a-regular-file"))


def _inside(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False


def _walk(folder: Path, base: str, patterns: Sequence[IgnoreFile]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files and links that are not ignored, unordered. Raises UserError for an unreadable folder."""
    here = folder / base
    try:
        entries = list(os.scandir(here))
        known = [*patterns, *_own_patterns(here, base)]
    except OSError as error:
        rule, fix = f"cannot be read: {error.strerror}", "Grant read permission."
        raise UserError([Problem(str(here), None, rule, fix, code="folder-not-readable")]) from error
    for entry in entries:
        path = f"{base}/{entry.name}" if base else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if ignored(path, known, is_folder=is_folder):
            continue
        if not is_folder:
            yield path, entry
        elif not Path(entry.path, ENVIRONMENT_MARK).exists():
            yield from _walk(folder, path, known)


def _own_patterns(here: Path, base: str) -> Iterator[IgnoreFile]:
    for name in IGNORE_FILES:
        file = here / name
        if file.is_file():
            yield read_patterns(file.read_text(errors="replace").splitlines(), base)


def _too_large(folder: Path, found: FolderContents) -> Problem:
    largest = sorted(found.files.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
    named = ", ".join(f"{path} ({size / 1e6:,.0f} MB)" for path, size in largest)
    rule = f"code may have at most {MOST_MB} MB, and has {found.size / 1e6:,.0f} MB"
    fix = f"Data goes to a bucket (--data s3://...). For files that the run does not need: {_LEAVE_OUT}."
    return Problem(str(folder), None, rule, f"The largest: {named}. {fix}", code="folder-too-large")
