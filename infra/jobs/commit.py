"""The git commit with exactly the content of a pack."""

import subprocess
from collections.abc import Collection
from pathlib import Path

_PATIENCE_S = 10


def commit_of(folder: Path, files: Collection[str]) -> str | None:
    """The commit that has all `files` of `folder` unchanged; None without one, or without git."""
    tracked = _git(folder, "ls-files", "-z")
    if tracked is None or not set(files) <= set(tracked.split("\0")):
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    if changed is None or changed.strip():
        return None
    head = _git(folder, "rev-parse", "HEAD")
    return head.strip() if head else None


def _git(folder: Path, *words: str) -> str | None:
    # Without optional locks, as the user may commit in the same checkout.
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
