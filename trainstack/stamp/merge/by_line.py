"""Merge of lines by `git merge-file`, which works outside of repositories, too."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infra.errors import Problem, UserError
from trainstack.stamp.merge.lines import ended, lines
from trainstack.stamp.merge.outcome import Conflict, MergedText

_TIMEOUT_S = 60
_FAILED = 128
"""Exit codes from here on are failures; one below is the number of conflicts (git-merge-file)."""
_SIDES = ("yours", "base", "template")


def merged_lines(base: str, yours: str, template: str) -> MergedText:
    """Merge three texts. Raises UserError without git, or where it fails."""
    if yours in (base, template):
        return MergedText([template])
    if template == base:
        return MergedText([yours])
    size = _unused(base + yours + template)
    return MergedText(list(_pieces(_merge_file((yours, base, template), size), size, yours, template)))


def _unused(text: str) -> int:
    """A length of markers for which no line of the texts is one."""
    size = 7
    while any(mark * size in text for mark in "<|=>"):
        size += 1
    return size


def _merge_file(texts: tuple[str, str, str], size: int) -> str:
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        for name, text in zip(_SIDES, texts, strict=True):
            Path(folder, name).write_text(ended(text), encoding="utf-8", newline="")
        command = ["git", "merge-file", "-p", "--diff3", f"--marker-size={size}", *_SIDES]
        # Settings of the machine must not change the result.
        variables = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        try:
            run = subprocess.run(
                command, cwd=folder, env=variables, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except FileNotFoundError:
            rule, fix = "you and the template changed a text, and a merge of lines needs git", "Install git."
            raise UserError([Problem("git", None, rule, fix, code="git-missing")]) from None
        except subprocess.TimeoutExpired:
            run = subprocess.CompletedProcess(command, _FAILED, b"", b"no answer in time")
    if run.returncode >= _FAILED or run.returncode < 0:
        reason = run.stderr.decode(errors="replace").strip()
        fix = "Correct what git names, then run the update again."
        raise UserError([Problem("git merge-file", None, f"failed: {reason}", fix, code="git-failed")])
    return run.stdout.decode()


def _pieces(text: str, size: int, yours: str, template: str) -> Iterator[str | Conflict]:
    """Plain text and conflicts: three parts, each after its mark."""
    marks = [mark * size for mark in "<|=>"]
    parts: list[str] = [""]
    before, at, template_at = "", 0, 0
    for line in lines(text):
        if not line.startswith(marks[len(parts) - 1]):
            parts[-1] += line
            continue
        if len(parts) < len(marks):
            parts.append("")
            continue
        before, *sides = parts
        if before:
            yield before
        at, template_at = (
            _found(whole, start, before, side)
            for whole, start, side in ((yours, at, sides[0]), (template, template_at, sides[2]))
        )
        yield Conflict("", _line(yours, at), _line(template, template_at), *sides)
        parts = [""]
    if parts[0]:
        yield parts[0]


def _found(whole: str, start: int, before: str, side: str) -> int:
    """Position of one side of a conflict; of an empty one, the end of the line before it."""
    if side:
        return max(whole.find(side, start), start)
    last = lines(before)[-1] if before else ""
    return max(whole.find(last, start) + len(last), start)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
