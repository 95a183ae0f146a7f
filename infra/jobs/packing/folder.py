"""Files of a folder that a run takes, by name and state; only ignore files are read."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from infra.errors import Problem, UserError
from infra.jobs.packing.ignore_files import (
    ENVIRONMENT_MARKS,
    IGNORE_FILES,
    IgnoreFile,
    left_out_by,
    read_patterns,
)
from infra.jobs.packing.links import followed
from infra.jobs.packing.names import has_control_characters, local, name_of, shown, text_of
from infra.jobs.packing.opening import FileChangedError, FileState, opened_folder, read_file, state_of

MOST_MB = 200
MOST_FILES = 20_000
_MOST_LEVELS = 100
_IGNORE_FILE_BYTES = 10_000_000
_NAMED = 5
LEAVE_OUT = "add it to .trainstackignore"


@dataclass
class FolderContents:
    """Files of a folder that a run takes. Paths are relative to it, with `/` as separator."""

    files: dict[str, FileState] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Links to files and folders that the run takes, with the path to which they finally lead."""
    folders: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    @property
    def empty_folders(self) -> set[str]:
        """Folders without anything that the run takes: scripts write into them."""
        above = {
            str(parent)
            for path in (*self.files, *self.links, *self.folders)
            for parent in PurePosixPath(path).parents
        }
        return self.folders - above


def survey(folder: Path, root: int) -> FolderContents:
    """The files that a run takes of `folder`, whose descriptor is `root`.

    Raises UserError for a folder that is too large to be packed.
    """
    found = FolderContents()
    links: list[str] = []
    for path, entry in _Walk(folder, found).entries(root):
        if len(found.files) + len(links) + len(found.folders) >= MOST_FILES:
            raise UserError([*found.problems, _too_many(folder, found)])
        if has_control_characters(path):
            rule, fix = (
                "has a line break or another control character in its name",
                f"Rename it, or {LEAVE_OUT}.",
            )
            found.problems.append(Problem(shown(path), None, rule, fix, code="name-not-printable"))
        elif entry.is_symlink():
            links.append(path)
        else:
            _take(found, path, entry)
    for path in sorted(links):
        target = followed(folder, path, found.files, found.folders, LEAVE_OUT)
        if isinstance(target, Problem):
            found.problems.append(target)
        else:
            found.links[path] = target
    if sum(one.size for one in found.files.values()) > MOST_MB * 1e6:
        raise UserError([*found.problems, _too_large(folder, found)])
    return found


def left_out(folder: Path, path: str) -> str | None:
    """The ignore file or list that leaves out a file of `folder`, or a folder above it; None without one."""
    known = list(_patterns_above(folder))
    base = ""
    for name in path.split("/"):
        here = f"{base}/{name}" if base else name
        try:
            with opened_folder(os.fsencode(local(folder, base))) as descriptor:
                known += _patterns_of(descriptor, base)
        except OSError:  # it has a problem of its own
            return None
        reason = left_out_by(here, known, is_folder=here != path)
        if reason is not None:
            return reason
        base = here
    return None


def _take(found: FolderContents, path: str, entry: os.DirEntry[str]) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        found.problems.append(changed(path))
        return
    if stat.S_ISREG(status.st_mode):
        found.files[path] = state_of(status)
    else:
        rule, fix = "is not a regular file", f"Remove it, or {LEAVE_OUT}."
        found.problems.append(Problem(shown(path), None, rule, fix, code="not-a-regular-file"))


def changed(path: str) -> Problem:
    """The problem of a file that another program writes, replaces or removes meanwhile."""
    fix = f"Wait for the program that writes it and start the run again, or {LEAVE_OUT}."
    return Problem(shown(path), None, "changed while it was packed", fix, code="file-changed")


def unreadable(path: str, error: OSError) -> Problem:
    """The problem of a file or folder that the user may not read."""
    rule, fix = f"cannot be read: {error.strerror}", f"Grant read permission, or {LEAVE_OUT}."
    return Problem(shown(path), None, rule, fix, code="file-not-readable")


class _Walk:
    """All files and links that are not left out, unordered; folders go into the contents."""

    def __init__(self, folder: Path, found: FolderContents) -> None:
        self._above, self._found = tuple(_patterns_above(folder)), found

    def entries(self, root: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Those of the whole folder. Raises UserError for one that is an environment."""
        entries = list(os.scandir(root))
        if ENVIRONMENT_MARKS & {entry.name for entry in entries}:
            fix = "Choose the folder of the script; requirements.txt names the packages of a run."
            raise UserError([Problem("folder", None, "is an environment", fix, code="folder-is-environment")])
        yield from self._of(root, entries, "", self._above)

    def _of(
        self, here: int, entries: Sequence[os.DirEntry[str]], base: str, above: Sequence[IgnoreFile]
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        known = list(above)
        try:
            known += _patterns_of(here, base)
        except OSError as error:
            name = text_of(error.filename)
            self._found.problems.append(unreadable(f"{base}/{name}" if base else name, error))
        for entry in entries:
            path = f"{base}/{text_of(entry.name)}" if base else text_of(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if left_out_by(path, known, is_folder=is_folder) is not None:
                continue
            if is_folder:
                yield from self._inside(here, entry, path, known)
            else:
                yield path, entry

    def _inside(
        self, above: int, entry: os.DirEntry[str], path: str, known: Sequence[IgnoreFile]
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        if path.count("/") >= _MOST_LEVELS:
            rule, fix = f"is more than {_MOST_LEVELS} levels deep", f"Move it up, or {LEAVE_OUT}."
            self._found.problems.append(Problem(shown(path), None, rule, fix, code="folder-too-deep"))
            return
        try:
            with opened_folder(os.fsencode(entry.name), above) as here:
                entries = list(os.scandir(here))
                if ENVIRONMENT_MARKS.isdisjoint(one.name for one in entries):
                    self._found.folders.add(path)
                    yield from self._of(here, entries, path, known)
        except (FileNotFoundError, NotADirectoryError):  # replaced since it was listed
            self._found.problems.append(changed(path))
        except OSError as error:
            self._found.problems.append(unreadable(path, error))


def _patterns_of(here: int, base: str) -> Iterator[IgnoreFile]:
    """Patterns of the ignore files of a folder. A link is not followed, as git does not."""
    for name in IGNORE_FILES:
        try:
            found = read_file(name.encode(), here, _IGNORE_FILE_BYTES)
        except (FileNotFoundError, FileChangedError):
            continue
        except OSError as error:
            if error.errno == errno.ELOOP:
                continue
            raise
        if found is not None:
            yield read_patterns(found[0], base, f"{base}/{name}" if base else name)


def _patterns_above(folder: Path) -> Iterator[IgnoreFile]:
    """Patterns of the .gitignore files above `folder` in its repository, unless they leave out `folder`."""
    whole = folder.resolve()
    above = list(whole.parents)
    tops = [index for index, one in enumerate(above) if (one / ".git").exists()]
    if (whole / ".git").exists() or not tops:
        return
    for one in reversed(above[: tops[0] + 1]):
        file = one / IGNORE_FILES[0]
        if not file.is_file() or file.is_symlink():
            continue
        inside = whole.relative_to(one).as_posix()
        found = read_patterns(file.read_bytes(), name=os.path.relpath(file, whole), inside=inside)
        if found.includes("", is_folder=True) is not False:
            yield found


def _too_many(folder: Path, found: FolderContents) -> Problem:
    tops = Counter(path.partition("/")[0] for path in (*found.files, *found.folders) if "/" in path)
    named = ", ".join(f"{shown(name)} ({count:,})" for name, count in tops.most_common(_NAMED))
    fix = (
        f"Choose the folder of the script, or name in .trainstackignore what the run does not need: {named}."
    )
    return Problem(name_of(folder), None, f"has over {MOST_FILES:,} files", fix, code="too-many-files")


def _too_large(folder: Path, found: FolderContents) -> Problem:
    sizes = {path: one.size for path, one in found.files.items()}
    largest = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
    named = ", ".join(f"{shown(path)} ({size / 1e6:,.0f} MB)" for path, size in largest)
    rule = f"code may have at most {MOST_MB} MB, and has {sum(sizes.values()) / 1e6:,.0f} MB"
    fix = f"Data goes to a bucket (--data). For files that the run does not need: {LEAVE_OUT}."
    text = f"The largest: {named}. {fix}"
    return Problem(name_of(folder), None, rule, text, code="folder-too-large")
