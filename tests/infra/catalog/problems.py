"""Problems of checks as text."""

from collections.abc import Iterable

from infra.errors import Problem


def said(problems: Iterable[Problem]) -> str:
    """All problems as text; "" when there is none. Every problem has a code and a fix."""
    found = list(problems)
    assert all(problem.code and problem.rule and problem.fix.endswith(".") for problem in found)
    return "\n".join(map(str, found))
