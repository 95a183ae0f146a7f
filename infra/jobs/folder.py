"""What a run would take of a folder, by names and sizes; of contents only the ignore files are read."""

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
_LEADS_OUT = "leads out of the folder, where the job is not"
_LEAVE_OUT = "name it in .trainstackignore"


@dataclass
class FolderContents:
    """What lies in a folder and goes with a run; sizes in bytes."""

    files: dict[str, int] = field(default_factory=dict)
    """By path below the folder, with `/` between its parts."""
    links: dict[str, str] = field(default_factory=dict)
    """Links to what lies in the folder, with where they lead."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def size(self) -> int:
        """All files together."""
        return sum(self.files.values())


def survey(folder: Path) -> FolderContents:
    """What a run takes of `folder`. Raises UserError with everything that is in the way."""
    if not folder.is_dir():
        raise UserError([_no_folder(folder)])
    found = FolderContents()
    for path, entry in _walk(folder, "", []):
        _take(found, folder, path, entry)
        if len(found.files) > MOST_FILES:
            fix = f"Choose the folder of the script itself, or {_LEAVE_OUT} what the run does not need."
            raise UserError(
                [
                    Problem(
                        str(folder),
                        f"over {MOST_FILES} files",
                        "is too much code",
                        fix,
                        code="too-many-files",
                    )
                ]
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
    return Problem(
        str(folder),
        None,
        "there is no such folder",
        "Name the folder with your train.py.",
        code="folder-not-found",
    )


def _take(found: FolderContents, folder: Path, path: str, entry: os.DirEntry[str]) -> None:
    if named_like_a_secret(path):
        rule = "looks like a secret, and whoever may read the bucket could read it"
        fix = f"Take it away, or {_LEAVE_OUT}; scripts get rights from the role of the job."
        found.problems.append(Problem(path, None, rule, fix, code="file-like-secret"))
        return
    if entry.is_symlink():
        target = Path(entry.path).readlink()
        if not target.is_absolute() and _inside(Path(entry.path), folder):
            found.links[path] = str(target)
        else:
            fix = f"Put a copy in its place, or {_LEAVE_OUT}."
            found.problems.append(Problem(path, str(target), _LEADS_OUT, fix, code="link-leaves-folder"))
        return
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        found.files[path] = status.st_size
    else:
        found.problems.append(
            Problem(
                path, None, "is no file that can be sent", f"Please {_LEAVE_OUT}.", code="not-a-regular-file"
            )
        )


def _inside(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False


def _walk(folder: Path, base: str, patterns: Sequence[IgnoreFile]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files and links that are not left out, in no promised order. Raises UserError for a closed folder."""
    here = folder / base
    try:
        entries = list(os.scandir(here))
        known = [*patterns, *_own_patterns(here, base)]
    except OSError as error:
        raise UserError(
            [
                Problem(
                    str(here),
                    None,
                    f"cannot be read: {error.strerror}",
                    "Open it.",
                    code="folder-not-readable",
                )
            ]
        ) from error
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
    rule = f"code may have {MOST_MB} MB, and has {found.size / 1e6:,.0f} MB"
    fix = f"Data goes to a bucket (--data s3://...). What the run does not need: {_LEAVE_OUT}."
    return Problem(str(folder), None, rule, f"The largest: {named}. {fix}", code="folder-too-large")
