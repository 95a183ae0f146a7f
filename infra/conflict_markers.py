"""Markers of an unresolved merge, as git and `trainstack update --conflicts` write them into files."""

import re

from infra.errors import Problem

CODE = "conflict-markers"
_CONFLICT = re.compile(r"(?ms)^<{7} [^\n]*\n(?:(?!^<{7} ).)*?^={7}$(?:(?!^<{7} ).)*?^>{7} ")


def first_line(text: str) -> int:
    """The line, from 1, at which the first conflict of a text begins; 0 without one."""
    found = _CONFLICT.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def problem(path: str, text: str) -> Problem | None:
    """The problem of a file with conflicts; None without one."""
    line = first_line(text)
    if not line:
        return None
    rule = f"has conflict markers of a merge, first in line {line}"
    fix = "Keep one version of each conflict, remove the lines of markers, and commit the file."
    return Problem(path, None, rule, fix, code=CODE)
