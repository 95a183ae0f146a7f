"""Rules of a cloud, their violations, and the book of rules of one cloud.

A rule sees the inputs of one resource. Values that a preview does not know yet are `UNKNOWN`: a rule that
needs such a value reports nothing. A rule about the resource alone runs when the engine checks it, before
anything is created; one that also needs other resources (`context`) runs on create and update.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from infra import rulebook
from rehearsal.core.model import Properties, Record

W = TypeVar("W")
# As the type of a rule: every resource type of the cloud.
EVERY = "*"


@dataclass(frozen=True)
class Violation:
    """Violation of a rule: property, reason and fix; `code` is the service's error code.

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
    """Access of a rule to other resources. Types are given without their package."""

    @property
    def preview(self) -> bool:
        """True in a preview, where new resources of the program do not exist yet."""

    def find(self, value: object, *types: str) -> Record | None:
        """The resource of one of `types` that an id, link or name refers to, or None."""

    def all(self, token: str) -> Iterator[Record]:
        """The resources of a type that are visible from here, oldest first."""

    def others(self, token: str) -> Iterator[Record]:
        """Like `all`, without the resource of the rule."""

    def users(self, used: Record, token: str) -> Iterator[Record]:
        """The resources of a type that refer to `used`, without the resource of the rule."""

    def current(self, token: str) -> Record | None:
        """The resource of the rule before an update; None for a create."""

    def exists(self, value: str) -> bool:
        """Return whether any scope has a resource with this id, link or name."""


@dataclass(frozen=True)
class Rule(Generic[W]):
    """One fact of a cloud: `types` are the resource types it is about, `source` documents it.

    `advice`: the service accepts what breaks it, but it does not work; reported as a warning.
    """

    id: str
    types: tuple[str, ...]
    summary: str
    source: str
    alone: Alone | None = None
    around: "Around[W] | None" = None
    advice: bool = False
    general: bool = False
    """Facts of a whole type: left out at a property of which another rule reports."""


class Book(rulebook.RuleBook[Rule[W]]):
    """The rules of one cloud by resource type; ids are unique."""

    def rule(self, id: str, *types: str, source: str) -> Callable[[Alone], Alone]:
        """Decorate a rule about a resource alone; its docstring is the summary."""

        def register(check: Alone) -> Alone:
            self.add(Rule(id, types, rulebook.one_line(check.__doc__), source, alone=check))
            return check

        return register

    def rule_around(
        self, id: str, *types: str, source: str, advice: bool = False
    ) -> Callable[["Around[W]"], "Around[W]"]:
        """Decorate a rule that needs other resources, too; its docstring is the summary."""

        def register(check: "Around[W]") -> "Around[W]":
            self.add(Rule(id, types, rulebook.one_line(check.__doc__), source, around=check, advice=advice))
            return check

        return register

    def broken_alone(self, type: str, inputs: Properties) -> Iterator[tuple[Rule[W], Violation]]:
        """Violations of the inputs by themselves."""
        reported = set[str]()
        for rule in sorted((*self.about(type), *self.about(EVERY)), key=lambda rule: rule.general):
            for violation in rule.alone(inputs) if rule.alone else ():
                if not rule.general or violation.path not in reported:
                    yield rule, violation
                reported.add(violation.path)

    def broken_around(self, type: str, inputs: Properties, world: W) -> Iterator[tuple[Rule[W], Violation]]:
        """Violations of the inputs among other resources."""
        for rule in (*self.about(type), *self.about(EVERY)):
            if rule.around:
                for violation in rule.around(inputs, world):
                    yield rule, violation
