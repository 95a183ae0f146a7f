"""The folder of a run as one archive: the same bytes for the same files, on any machine at any time."""

import gzip
import hashlib
import io
import os
import posixpath
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.errors import Problem, UserError
from infra.jobs.packing import scripts
from infra.jobs.packing.commit import commit_of
from infra.jobs.packing.folder import LEAVE_OUT, FolderContents, changed, survey, unreadable
from infra.jobs.packing.hints import hints
from infra.jobs.packing.links import relative
from infra.jobs.packing.names import bytes_of, name_of, shown, text_of
from infra.jobs.packing.opening import FileChangedError, opened_folder, read_listed
from infra.jobs.packing.requirement_files import RequirementFiles
from infra.jobs.packing.secret_names import named_like_a_secret
from infra.jobs.packing.secret_texts import secrets_in

DEFAULT_SCRIPT = "train.py"
_RUNNABLE, _PLAIN = 0o755, 0o644
_LEVEL = 6
_READERS = "readers of the bucket could read it"
_SEND = "If it is none: --send {path}."


@dataclass(frozen=True)
class CodePack:
    """A packed folder."""

    content: bytes
    """A tar.gz."""
    files: tuple[str, ...]
    """Paths of files, links and empty folders, sorted."""
    size: int
    """Bytes of the files before they were packed."""
    script: str
    commit: str | None
    """The git commit, where all files are unchanged from it."""
    sha256: str = ""
    """Digest of the archive before compression, in hex: libraries of zlib compress differently."""
    module: str = ""
    """The module as which the script runs; "" for a file."""
    warnings: tuple[Problem, ...] = ()

    @property
    def version(self) -> str:
        """The code version of a run."""
        return self.commit or f"pack:{self.sha256}"


def pack(folder: Path, script: str = DEFAULT_SCRIPT, send: Collection[str] = ()) -> CodePack:
    """Pack the files of `folder` that a run takes; `send` has paths that look like secrets and are none.

    Raises UserError with all problems.
    """
    if not folder.is_dir():
        raise UserError([_no_folder(folder)])
    try:
        with opened_folder(os.fsencode(folder)) as root:
            found = survey(folder, root)
            problems = list(found.problems)
            contents = dict(_read(root, found, problems))
    except OSError as error:
        raise UserError([unreadable(text_of(os.fspath(folder)), error)]) from error
    sent = {posixpath.normpath(text_of(path)) for path in send}
    problems += _secrets(found, contents, sent)
    path = scripts.locate(folder, script, found)
    requirements = RequirementFiles(contents, found.links, frozenset(found.folders))
    problems += requirements.problems()
    if isinstance(path, Problem):
        raise UserError([*problems, path])
    own = contents.get(found.links.get(path, path), b"")
    problems += scripts.problems(path, own)
    if problems:
        raise UserError(problems)
    warnings = [*scripts.syntax_warning(path, own), *requirements.warnings]
    warnings += hints(contents, found.empty_folders, path)
    archive = _archive(found, contents)
    linked = {one: bytes_of(relative(one, target)) for one, target in found.links.items()}
    return CodePack(
        content=gzip.compress(archive, _LEVEL, mtime=0),
        files=tuple(sorted([*contents, *found.links, *found.empty_folders])),
        size=sum(map(len, contents.values())),
        script=path,
        commit=commit_of(folder, {**contents, **linked}),
        sha256=hashlib.sha256(archive).hexdigest(),
        module=scripts.module_of(path, own),
        warnings=tuple(warnings),
    )


def _no_folder(folder: Path) -> Problem:
    named = name_of(folder)
    if folder.is_file():
        fix = f"Name its folder: {name_of(folder.parent)} --script {name_of(Path(folder.name))}."
        return Problem(named, None, "is a file; a run takes a folder", fix, code="folder-is-file")
    rule, fix = "there is no such folder", "Name the folder with your train.py."
    return Problem(named, None, rule, fix, code="folder-not-found")


def _read(root: int, found: FolderContents, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    for path, listed in found.files.items():
        try:
            yield path, read_listed(root, path, listed)
        except FileChangedError:
            problems.append(changed(path))
        except OSError as error:
            problems.append(unreadable(path, error))


def _secrets(
    found: FolderContents, contents: Mapping[str, bytes], sent: Collection[str]
) -> Iterator[Problem]:
    """Files that look like secrets by their name or content, except those in `sent`."""
    for path in sorted({*found.files, *found.links} - set(sent)):
        fix = f"Remove it, or {LEAVE_OUT}; scripts have the permissions of the job's role. {_SEND}"
        if named_like_a_secret(path):
            rule = f"is named like a secret; {_READERS}"
            yield Problem(shown(path), None, rule, fix.format(path=shown(path)), code="file-like-secret")
            continue
        for line, kind in secrets_in(contents.get(path, b"")):
            rule = f"has a {kind}; {_READERS}"
            place = f"{shown(path)}:{line}"
            yield Problem(place, None, rule, fix.format(path=shown(path)), code="file-holds-secret")
    for path in sorted(set(sent) - {*found.files, *found.links}):
        rule, fix = "is not a file that the run takes", "Name a file by its path in the folder."
        yield Problem("--send", shown(path), rule, fix, code="sent-file-missing")


def _archive(found: FolderContents, contents: Mapping[str, bytes]) -> bytes:
    """A tar of files, links and empty folders, without metadata of this machine.

    GNU's format: names of any length and encoding as they are, which busybox reads, too.
    """
    made = io.BytesIO()
    with tarfile.open(
        fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name in sorted([*contents, *found.links, *found.empty_folders]):
            entry = tarfile.TarInfo(name)
            if name in found.links:
                entry.type, entry.linkname = tarfile.SYMTYPE, relative(name, found.links[name])
            elif name in contents:
                entry.size = len(contents[name])
                # File systems of Windows have no bit for programs.
                program = found.files[name].executable or contents[name].startswith(b"#!")
                entry.mode = _RUNNABLE if program else _PLAIN
                archive.addfile(entry, io.BytesIO(contents[name]))
                continue
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, _RUNNABLE
            archive.addfile(entry)
    return made.getvalue()
