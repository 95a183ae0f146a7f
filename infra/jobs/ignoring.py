"""Which files of a folder stay at home: caches, and what its .gitignore and .trainstackignore name (pure).

A plain part of git's patterns: `#` comments, `*`, `?`, `[...]`, `**`, a `/` at the end for folders, a `/`
elsewhere for paths from the file's own folder, `!` to take back; the last line that fits decides. Files in a
folder that is left out cannot be taken back, as in git. Source: gitignore(5), "Pattern format".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

IGNORE_FILES = (".gitignore", ".trainstackignore")
# What no run needs from the machine that it was written on.
NEVER = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".cache"),
        *(".idea", ".vscode", ".DS_Store", ".trainstack", ".pulumi", "mlruns"),
    }
)
# A folder with this file is a virtual environment, whatever it is called (PEP 405).
ENVIRONMENT_MARK = "pyvenv.cfg"


@dataclass(frozen=True)
class Pattern:
    """One line of an ignore file, and the folder in which that file lies ("" for the top)."""

    base: str
    parts: tuple[str, ...]
    folders_only: bool
    takes_back: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the line is about `path`, relative to the top, with `/` between its parts."""
        if self.folders_only and not is_folder:
            return False
        if self.base and not path.startswith(f"{self.base}/"):
            return False
        own = path[len(self.base) + 1 :] if self.base else path
        return _fits(self.parts, own.split("/"))


def read_patterns(lines: Iterable[str], base: str = "") -> list[Pattern]:
    """The patterns in the lines of an ignore file that lies in folder `base`."""
    found = []
    for line in lines:
        text = line.rstrip("\n").rstrip()
        if not text or text.startswith("#"):
            continue
        takes_back = text.startswith("!")
        text = text[1:] if takes_back else text.removeprefix("\\")
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        if text:
            # One without a `/` fits at any depth.
            deep = text.removeprefix("/") if "/" in text else f"**/{text}"
            found.append(Pattern(base, tuple(deep.split("/")), folders_only, takes_back))
    return found


def ignored(path: str, patterns: Sequence[Pattern], *, is_folder: bool) -> bool:
    """Whether `path` stays at home, if its folder does not."""
    name = path.rpartition("/")[2]
    if name in NEVER or name.endswith((".pyc", ".egg-info")):
        return True
    for pattern in reversed(patterns):
        if pattern.matches(path, is_folder=is_folder):
            return not pattern.takes_back
    return False


def _fits(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the parts of a pattern are about the names of a path; `**` stands for any number of folders."""
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**":
        return len(parts) == 1 or any(_fits(parts[1:], names[start:]) for start in range(len(names)))
    return fnmatchcase(names[0], parts[0]) and _fits(parts[1:], names[1:])
