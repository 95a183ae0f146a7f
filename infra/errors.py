"""What a user did that cannot be honoured, told so that it can be mended in one go."""

from collections.abc import Iterable
from dataclasses import dataclass

USAGE_EXIT_CODE = 2


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what was found, the rule it breaks, and what to do about it."""

    path: str
    value: object
    rule: str
    fix: str

    def __str__(self) -> str:
        got = "" if self.value is None else f" (got {self.value!r})"
        return f"{self.path}: {self.rule}{got}. {self.fix}"


class UserError(Exception):
    """All problems found in one pass; shown without a traceback, ends the process with exit code 2."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
