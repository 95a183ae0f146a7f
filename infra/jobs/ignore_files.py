"""Files of a folder that a run leaves out: caches, and matches of its .gitignore and .trainstackignore.

Patterns are git's, gitignore(5); files in a folder that is left out cannot be included again, as in git.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pathspec import GitIgnoreSpec

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


class IgnoreFile(NamedTuple):
    """The patterns of one ignore file, and its folder ("" for the top)."""

    base: str
    patterns: GitIgnoreSpec

    def includes(self, path: str, *, is_folder: bool) -> bool | None:
        """True when the last pattern that matches `path` includes it again; None where no pattern matches."""
        if self.base and not path.startswith(f"{self.base}/"):
            return None
        own = path[len(self.base) + 1 :] if self.base else path
        excluded = self.patterns.check_file(f"{own}/" if is_folder else own).include
        return None if excluded is None else not excluded


def read_patterns(lines: Iterable[str], base: str = "") -> IgnoreFile:
    """The patterns in the lines of an ignore file in folder `base`; as git, without invalid lines."""
    return IgnoreFile(base, GitIgnoreSpec.from_lines(filter(_is_valid, lines)))


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def ignored(path: str, files: Sequence[IgnoreFile], *, is_folder: bool) -> bool:
    """Return whether a run leaves `path` out, if it does not leave out its folder."""
    name = path.rpartition("/")[2]
    if name in NEVER or name.endswith((".pyc", ".egg-info")):
        return True
    verdicts = (file.includes(path, is_folder=is_folder) for file in reversed(files))
    return next((not verdict for verdict in verdicts if verdict is not None), False)
