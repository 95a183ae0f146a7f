"""User errors, reported together with fixes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

USAGE_EXIT_CODE = 2
# Ends the first line of what the Pulumi program says when it refuses its input: the engine passes on text.
REFUSED = "cannot be deployed:"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what was found, the rule it breaks, and what to do about it.

    `against` is the path of another value that it contradicts. `origin` and `against_origin` say which layer
    and line the two values come from, where that is known.
    """

    path: str
    value: object
    rule: str
    fix: str
    against: str = ""
    origin: str = ""
    against_origin: str = ""

    def placed(self, origin: str, against_origin: str = "") -> Self:
        """The same problem with the layer and line of its values."""
        return replace(self, origin=origin, against_origin=against_origin)

    def __str__(self) -> str:
        found = [] if self.value is None else [f"got {self.value!r}"]
        found += [f"from {self.origin}"] if self.origin else []
        found += [f"{self.against} is from {self.against_origin}"] if self.against_origin else []
        said = f" ({', '.join(found)})" if found else ""
        return f"{self.path}: {self.rule}{said}. {self.fix}"


class UserError(Exception):
    """All problems found in one pass; shown without a traceback, ends the process with exit code 2."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
