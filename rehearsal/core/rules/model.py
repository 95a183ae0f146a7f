"""A rule of a cloud, what breaks it, and the book that holds the rules of one cloud.

A rule sees the inputs of one resource. Values that a preview does not know yet are `UNKNOWN`: a rule that
needs such a value says nothing. A rule about the resource alone runs when the engine checks it, before
anything is created; one about the resource and its surroundings (`world`) when it is created or changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from infra import rulebook
from rehearsal.core.model import Properties, Record

W = TypeVar("W")


@dataclass(frozen=True)
class Violation:
    """How a rule is broken: at which property, why, what to do; `code` is the service's error code.

    `advice`: the service accepts this one, but it does not work; reported as a warning.
    """

    path: str
    message: str
    fix: str = ""
    code: str = ""
    advice: bool = False


Alone = Callable[[Properties], Iterator[Violation]]
Around = Callable[[Properties, W], Iterator[Violation]]


class RuleContext(Protocol):
    """What exists around the resource that a rule is about. Types are given without their package."""

    @property
    def preview(self) -> bool:
        """Whether what a program is about to create does not exist yet."""

    def find(self, value: object, *types: str) -> Record | None:
        """The resource of one of `types` that an id, link or name refers to, or None."""

    def all(self, token: str) -> Iterator[Record]:
        """The resources of a type that can be seen from here, oldest first."""

    def others(self, token: str) -> Iterator[Record]:
        """Like `all`, without the resource that the rule is about."""

    def users(self, used: Record, token: str) -> Iterator[Record]:
        """The resources of a type that refer to `used`, without the one that the rule is about."""

    def current(self, token: str) -> Record | None:
        """The resource that the rule is about as it is before an update; None when it is being created."""

    def exists(self, value: str) -> bool:
        """Whether something, wherever it is, is known under an id, link or name."""


@dataclass(frozen=True)
class Rule(Generic[W]):
    """One fact of a cloud: `types` are the resource types it is about, `source` is where it is written.

    `advice`: the service accepts what breaks it, but it does not work; reported as a warning.
    """

    id: str
    types: tuple[str, ...]
    summary: str
    source: str
    alone: Alone | None = None
    around: "Around[W] | None" = None
    advice: bool = False


class Book(rulebook.RuleBook[Rule[W]]):
    """The rules of one cloud by the type they are about; ids are never used twice."""

    def rule(self, id: str, *types: str, source: str) -> Callable[[Alone], Alone]:
        """Decorate a rule about a resource alone; its docstring is the summary."""

        def register(check: Alone) -> Alone:
            self.add(Rule(id, types, rulebook.one_line(check.__doc__), source, alone=check))
            return check

        return register

    def rule_around(
        self, id: str, *types: str, source: str, advice: bool = False
    ) -> Callable[["Around[W]"], "Around[W]"]:
        """Decorate a rule about a resource and what exists around it; its docstring is the summary."""

        def register(check: "Around[W]") -> "Around[W]":
            self.add(Rule(id, types, rulebook.one_line(check.__doc__), source, around=check, advice=advice))
            return check

        return register

    def broken_alone(self, type: str, inputs: Properties) -> Iterator[tuple[Rule[W], Violation]]:
        """What the inputs break by themselves."""
        for rule in self.about(type):
            if rule.alone:
                for violation in rule.alone(inputs):
                    yield rule, violation

    def broken_around(self, type: str, inputs: Properties, world: W) -> Iterator[tuple[Rule[W], Violation]]:
        """What the inputs break in this world."""
        for rule in self.about(type):
            if rule.around:
                for violation in rule.around(inputs, world):
                    yield rule, violation
