"""The git commit with exactly the content of a pack."""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from infra.jobs.packing.names import text_of

_PATIENCE_S = 10
_DIGESTS = {40: hashlib.sha1, 64: hashlib.sha256}
"""Of git's object names, by their length (gitformat-hash-function-transition)."""


def commit_of(folder: Path, contents: Mapping[str, bytes]) -> str | None:
    """The commit that has all `contents` of `folder`, by path, as they are; None without one, or without git.

    Compared by git's own digests: `git status` does not report files that are marked `assume-unchanged` or
    that a filter such as `core.autocrlf` converts, and executes a program of the folder (`core.fsmonitor`).
    """
    head = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    tree = _git(folder, "ls-tree", "-r", "-z", "HEAD")
    if head is None or tree is None:
        return None
    known = {}
    for line in tree.split(b"\0"):
        about, _, name = line.partition(b"\t")
        known[text_of(name)] = about.rpartition(b" ")[2].decode("ascii")
    commit = head.strip().decode("ascii")
    made = _DIGESTS.get(len(commit))
    if made is None or not known.keys() >= contents.keys():
        return None
    for path, content in contents.items():
        if known[path] != made(b"blob %d\0%b" % (len(content), content)).hexdigest():
            return None
    return commit


def _git(folder: Path, *words: str) -> bytes | None:
    # Variables of git name another repository while one of its hooks runs.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", os.fspath(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE_S, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
