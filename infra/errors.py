"""User errors, reported together with fixes."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from infra.exit_codes import ExitCode
from infra.places import located

USAGE_EXIT_CODE = ExitCode.USAGE
# End of the first line of the Pulumi program's error for refused input: the engine passes only text.
# Begin of a rehearsed provider's warning beside an update that may be a replacement.
MAY_REPLACE = "may be replaced"
REFUSED = "cannot be deployed:"


@dataclass(frozen=True)
class Problem:
    """A rule that a value breaks: path, value, rule and fix.

    `code` identifies the kind of problem, such as `pool-needs-one-zone`: programs and tests rely on it, the
    wording may change. `against` is the path of another value that it contradicts. `origin` and
    `against_origin` are the layer and line of the two values, where known.
    """

    path: str
    value: object
    rule: str
    fix: str
    against: str = ""
    origin: str = ""
    against_origin: str = ""
    code: str = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", located(self.rule))
        object.__setattr__(self, "fix", located(self.fix))

    def placed(self, origin: str, against_origin: str = "") -> Self:
        """The same problem with the layer and line of its values."""
        return replace(self, origin=origin, against_origin=against_origin)

    def __str__(self) -> str:
        value = self.value.value if isinstance(self.value, Enum) else self.value
        found = [] if value is None else [f"got {value!r}"]
        found += [f"from {self.origin}"] if self.origin else []
        found += [f"{self.against} is from {self.against_origin}"] if self.against_origin else []
        details = f" ({', '.join(found)})" if found else ""
        return f"{self.path}: {self.rule}{details}. {self.fix} [{self.code}]"


def did_you_mean(value: object, known: Iterable[str], otherwise: str) -> str:
    """A fix that names the nearest of the `known` values; `otherwise` where none is near."""
    near = difflib.get_close_matches(str(value), [*known], n=1)
    return f"Did you mean `{near[0]}`?" if near else otherwise


def nearest_first(value: object, known: Iterable[str]) -> str:
    """A fix that names the nearest of the `known` values, if one is near, and then all of them."""
    names = sorted(known)
    return f"{did_you_mean(value, names, '')} Known are {', '.join(names)}.".lstrip()


class UserError(Exception):
    """All problems found in one pass; shown without a traceback, ends the process with exit code 2."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def codes(self) -> tuple[tuple[str, str], ...]:
        """Code and path of each problem, in the order of `problems`."""
        return tuple((problem.code, problem.path) for problem in self.problems)


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of a UserError to a list: what is checked afterwards is reported with them."""
    try:
        yield
    except UserError as error:
        problems += error.problems


def raise_all(problems: Iterable[Problem]) -> None:
    """Raise UserError for problems, if there are any."""
    if found := tuple(problems):
        raise UserError(found)
