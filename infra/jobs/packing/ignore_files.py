"""Files of a folder that a run leaves out: caches, and matches of its .gitignore and .trainstackignore.

Patterns are git's, gitignore(5); files in a folder that is left out cannot be included again, as in git.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".trainstackignore")
# What no run needs from the machine that it was written on.
NEVER = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", ".conda", ".pixi", ".tox", ".nox", "node_modules"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".cache"),
        *(".idea", ".vscode", ".DS_Store", "Icon\r", "__MACOSX", "Thumbs.db", "desktop.ini"),
        *(".trainstack", ".pulumi", "mlruns"),
    }
)
_NEVER_ENDINGS = (".pyc", ".egg-info")
# A folder with one of these is an environment, whatever it is called: PEP 405, and conda's list of packages
# (conda/conda conda/gateways/disk/test.py, is_conda_environment).
ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
_INSIDE = re.compile(r"/\*\*(/?[ \t]*)$")
OWN_LIST = "the list of caches and environments"


class IgnoreFile(NamedTuple):
    """The patterns of one ignore file, and its folder ("" for the top)."""

    base: str
    patterns: GitIgnoreSpec
    name: str = ""
    inside: str = ""
    """Path of the packed folder below that of the ignore file, for one above it."""

    def includes(self, path: str, *, is_folder: bool) -> bool | None:
        """True when the last pattern that matches `path` includes it again; None where no pattern matches."""
        if self.base and not path.startswith(f"{self.base}/"):
            return None
        own = path[len(self.base) + 1 :] if self.base else "/".join(filter(None, (self.inside, path)))
        for pattern in reversed(list(self.patterns.patterns)):
            if pattern.include is not None and _matches(pattern, own, is_folder=is_folder):
                return not pattern.include
        return None


def _matches(pattern: Any, path: str, *, is_folder: bool) -> bool:
    """Return whether a pattern is about `path` itself; a folder above it has been judged before, as in git.

    `GitIgnoreSpec.check_file` judges both at once, and lets a pattern for a folder include its files again.
    """
    text = f"{path}/" if is_folder else path
    found = pattern.match_file(text)
    if found is None:
        return False
    match: re.Match[str] = found.match
    if match.re.pattern.startswith("^"):
        return match.end() == len(text)
    return is_folder or match.re.groups == 0  # `*`, and `*/` with a group for the slash


def read_patterns(content: bytes, base: str = "", name: str = "", inside: str = "") -> IgnoreFile:
    """The patterns of an ignore file in folder `base`; as git, without invalid lines.

    Lines as git reads them: a byte order mark is skipped, and a line ends with LF or CRLF alone (git v2.47
    dir.c, add_patterns_from_buffer).
    """
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return IgnoreFile(base, _spec(line.removesuffix("\r") for line in text.split("\n")), name, inside)


def _spec(lines: Iterable[str]) -> GitIgnoreSpec:
    # pathspec 1.1 takes `a/**` for the folder `a` itself, too, from which nothing could be included again.
    inner = (_INSIDE.sub(r"/**/*\1", line) for line in lines)
    return GitIgnoreSpec.from_lines(filter(_is_valid, inner))


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def left_out_by(path: str, files: Sequence[IgnoreFile], *, is_folder: bool) -> str | None:
    """The ignore file, or `OWN_LIST`, that leaves out `path` of a folder that is not; None without one."""
    name = path.rpartition("/")[2]
    if name in NEVER or name.endswith(_NEVER_ENDINGS):
        return OWN_LIST
    for file in reversed(files):
        included = file.includes(path, is_folder=is_folder)
        if included is not None:
            return None if included else file.name or "an ignore file"
    return None
