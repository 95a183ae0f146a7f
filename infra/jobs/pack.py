"""The folder of a run as one archive: the same bytes for the same files, on any machine at any time."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from infra.errors import Problem, UserError
from infra.jobs.commit import commit_of
from infra.jobs.folder import survey
from infra.jobs.private_files import holds_a_key

DEFAULT_SCRIPT = "train.py"
_RUNNABLE, _PLAIN = 0o755, 0o644
_LEVEL = 6


@dataclass(frozen=True)
class CodePack:
    """A packed folder."""

    content: bytes
    """A tar.gz."""
    files: tuple[str, ...]
    """Paths of files and links, sorted."""
    size: int
    """Bytes of the files before they were packed."""
    script: str
    commit: str | None
    """The git commit, where all files are unchanged from it."""

    @property
    def sha256(self) -> str:
        """Digest of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def version(self) -> str:
        """The code version of a run."""
        return self.commit or f"pack:{self.sha256}"


def pack(folder: Path, script: str = DEFAULT_SCRIPT) -> CodePack:
    """Pack the files of `folder` that a run takes. Raises UserError with all problems."""
    found = survey(folder)
    if script not in found.files:
        raise UserError([_no_script(folder, script, found.files)])
    contents, problems = {}, []
    for path in found.files:
        try:
            contents[path] = (folder / path).read_bytes()
        except OSError as error:
            fix = "Grant read permission, or add it to .trainstackignore."
            rule = f"cannot be read: {error.strerror}"
            problems.append(Problem(path, None, rule, fix, code="file-not-readable"))
            continue
        if holds_a_key(contents[path]):
            fix = "Remove it, or add it to .trainstackignore."
            problems.append(Problem(path, None, "holds a private key", fix, code="file-holds-key"))
    if problems:
        raise UserError(problems)
    names = tuple(sorted([*contents, *found.links]))
    made = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=made, mode="wb", compresslevel=_LEVEL, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in names:
            _add(archive, folder, name, contents.get(name), found.links.get(name, ""))
    size = sum(map(len, contents.values()))
    return CodePack(made.getvalue(), names, size, script, commit_of(folder, names))


def _add(archive: tarfile.TarFile, folder: Path, name: str, content: bytes | None, target: str) -> None:
    """Add a file, or a link (without content), without metadata of this machine."""
    entry = tarfile.TarInfo(name)
    entry.mode = _PLAIN
    if content is None:
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        archive.addfile(entry)
        return
    entry.size = len(content)
    if (folder / name).stat().st_mode & 0o100:
        entry.mode = _RUNNABLE
    archive.addfile(entry, io.BytesIO(content))


def _no_script(folder: Path, script: str, files: dict[str, int]) -> Problem:
    if (folder / script).is_file():
        rule = f"an ignore file leaves out the script {script}"
        fix = f"Include it: add the line !{script} to .trainstackignore."
        return Problem(str(folder), None, rule, fix, code="script-ignored")
    scripts = sorted(path for path in files if path.endswith((".py", ".sh")))[:5]
    fix = f"Name one with --script: {', '.join(scripts)}." if scripts else "Choose the folder of your script."
    return Problem(str(folder), None, f"has no script {script}", fix, code="script-missing")
