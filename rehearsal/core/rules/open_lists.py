"""Lists that grow: machine types and versions.

A list is as old as its source. A value that it does not have is newer than the list (a warning), or wrong (a
refusal). It is newer where the next release of what the list has could bring it:

- a machine type: a size that exists, in the newest generation of a line, the next one, or a new line;
- a version: the next major one, or a later one of a line that the list has.

Any other value is wrong: a retired version, a size that a family does not have, a generation that skips one.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

# Letters and a generation, then what is special in a family: `m5`, `c6gn`, `n2d`.
_FAMILY = re.compile(r"([a-z]+)(\d+)([a-z0-9-]*)")
# How far the last number of a version may be ahead of the newest one of its line.
_AHEAD = 10


class ListVerdict(Enum):
    """ListVerdict of a value by a list."""

    KNOWN = "known"
    NEWER = "newer"
    WRONG = "wrong"


@dataclass(frozen=True)
class Machines:
    """Machine types: families and their sizes, with the text around a family and its size."""

    families: Mapping[str, Sequence[str]]
    prefix: str = ""
    suffix: str = ""
    sign: str = "."

    def judge(self, name: str) -> ListVerdict:
        """The verdict on a machine type."""
        plain = name.removeprefix(self.prefix).removesuffix(self.suffix)
        if f"{self.prefix}{plain}{self.suffix}" != name:
            return ListVerdict.WRONG
        family, _, size = plain.partition(self.sign)
        if size in self.families.get(family, ()):
            return ListVerdict.KNOWN
        form = _FAMILY.fullmatch(family)
        if form is None or not any(size in sizes for sizes in self.families.values()):
            return ListVerdict.WRONG
        line, generation = form[1], int(form[2])
        newest = self._newest(line)
        if family in self.families:
            fits = generation == newest
        else:
            fits = generation == 1 if newest is None else newest <= generation <= newest + 1
        return ListVerdict.NEWER if fits else ListVerdict.WRONG

    def _newest(self, line: str) -> int | None:
        forms = (_FAMILY.fullmatch(family) for family in self.families)
        return max((int(form[2]) for form in forms if form and form[1] == line), default=None)

    def nearest(self, name: str) -> str:
        """The known machine type that is nearest to a wrong one: of its family, if there is one."""
        plain = name.removeprefix(self.prefix).removesuffix(self.suffix)
        family, _, size = plain.partition(self.sign)
        sizes = self.families.get(family)
        if sizes:
            near = difflib.get_close_matches(size, sizes, n=1, cutoff=0)
            return self._full(family, near[0])
        known = [(one, its) for one, sizes in self.families.items() for its in sizes]
        names = {self._full(one, its): None for one, its in known}
        return difflib.get_close_matches(name, names, n=1, cutoff=0)[0]

    def _full(self, family: str, size: str) -> str:
        return f"{self.prefix}{family}{self.sign if size else ''}{size}{self.suffix}"


def version(value: str, known: Iterable[str]) -> ListVerdict:
    """The verdict on a version; the beginning of a known one (`16` of `16.4`) is known, too."""
    lines = {part for one in known for part in _beginnings(one)}
    if value in lines:
        return ListVerdict.KNOWN
    *head, last = _numbers(value) or (0,)
    alike = [_numbers(one) for one in lines if _skeleton(one) == _skeleton(value)]
    line = [one[-1] for one in alike if list(one[:-1]) == head]
    if line and last > max(line):
        ahead = last - max(line)
        return ListVerdict.NEWER if ahead <= (_AHEAD if head else 1) else ListVerdict.WRONG
    majors = [one[0] for one in alike]
    next_major = bool(majors) and bool(head) and head[0] == max(majors) + 1
    return ListVerdict.NEWER if next_major and last <= _AHEAD else ListVerdict.WRONG


def nearest(value: str, known: Sequence[str]) -> str:
    """The known version that is nearest to a wrong one: of its major version, if there is one."""
    major = re.match(r"\D*\d+(?!\d)", value)
    alike = [one for one in known if major and re.match(rf"{re.escape(major.group())}(?!\d)", one)]
    return difflib.get_close_matches(value, alike or known, n=1, cutoff=0)[0]


def _beginnings(value: str) -> list[str]:
    return [*(value[: sign.start()] for sign in re.finditer(r"[.-]", value)), value]


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", value))


def _skeleton(value: str) -> str:
    return re.sub(r"\d+", "0", value)
