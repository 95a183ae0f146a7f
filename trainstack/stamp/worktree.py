"""Uncommitted changes of a client's folder, by git."""

import subprocess
from pathlib import Path

from infra.errors import Problem, UserError

_TIMEOUT_S = 60
_MOST = 5


def require_clean(folder: Path) -> bool:
    """True for a folder that is committed, False without a repository.

    Raises UserError with files that are not committed, or where git fails.
    """
    command = ["git", "-C", str(folder), "status", "--porcelain", "-z", "--untracked-files=all", "--", "."]
    try:
        run = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        raise _failed(f"git status did not end in {_TIMEOUT_S} s") from None
    if run.returncode:
        reason = run.stderr.decode(errors="replace").strip()
        if "not a git repository" in reason:
            return False
        raise _failed(f"git status failed: {reason}")
    # `XY name`; a renamed file is followed by its old name, which has no such beginning.
    rows = [one for one in run.stdout.decode(errors="replace").split("\0") if one[2:3] == " "]
    if rows:
        names = ", ".join(one[3:] for one in rows[:_MOST])
        more = f" and {len(rows) - _MOST} more" if len(rows) > _MOST else ""
        fix = "Commit them, or `git stash -u`, so that the update can be separated from them; or add --dirty."
        rule = f"has changes that are not committed: {names}{more}"
        raise UserError([Problem("CLIENT", str(folder), rule, fix, code="client-tree-dirty")])
    return True


def _failed(rule: str) -> UserError:
    fix = "Correct what git names, or add --dirty."
    return UserError([Problem("git", None, rule, fix, code="git-failed")])
