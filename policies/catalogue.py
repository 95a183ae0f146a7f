"""The form of a rule, and the catalogue that holds all of them.

A rule is a small function on plain resources. What it yields are violations; a resource that it is not about
raises NotApplicableError with the reason; a value that is not known raises UndeterminedError by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from infra import rulebook
from policies.resource import Resource
from policies.severity import Severity
from policies.stack import Stack

Scope = Literal["resource", "stack"]


class NotApplicableError(Exception):
    """The rule says nothing about this resource or stack; the text is the reason, as a part of a sentence."""


@dataclass(frozen=True)
class Violation:
    """How a rule is broken: what was found, at which property, and what to do about it.

    `fix` takes the place of the rule's remediation where more can be said. A rule of the whole stack names
    the `resource` where there is one to name.
    """

    message: str
    path: str = ""
    fix: str = ""
    resource: Resource | None = None


Alone = Callable[[Resource], Iterator[Violation]]
Around = Callable[[Resource, Stack], Iterator[Violation]]
Whole = Callable[[Stack], Iterator[Violation]]


@dataclass(frozen=True)
class About:
    """What a rule says about itself besides its title, which is the docstring of its function."""

    id: str
    severity: Severity
    kinds: tuple[str, ...]
    """The types it is about; one of the whole stack applies where any of them is."""
    rationale: str
    """Why anybody should want it."""
    remediation: str
    """What to do where it fails."""
    references: tuple[str, ...] = ()
    """The same in other catalogues, such as "CKV_AWS_24"; only what somebody has read there."""


@dataclass(frozen=True)
class Rule(About):
    """One rule, with the one of its functions that it has."""

    title: str = field(kw_only=True)
    """What holds where the rule passes, in a sentence."""
    alone: Alone | None = None
    around: Around | None = None
    whole: Whole | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds, as a book of rules calls them."""
        return self.kinds

    @property
    def scope(self) -> Scope:
        """Whether a resource alone decides."""
        return "resource" if self.alone else "stack"

    @property
    def group(self) -> str:
        """The part of the id that names its subject, such as NET."""
        return self.id.split("-")[1]


class Catalogue(rulebook.RuleBook[Rule]):
    """The rules of the policy pack."""

    def rule(self, about: About) -> Callable[[Alone], Alone]:
        """Decorate a rule about one resource alone."""

        def register(check: Alone) -> Alone:
            self.add(_rule(about, check.__doc__, alone=check))
            return check

        return register

    def rule_around(self, about: About) -> Callable[[Around], Around]:
        """Decorate a rule about one resource and the stack around it."""

        def register(check: Around) -> Around:
            self.add(_rule(about, check.__doc__, around=check))
            return check

        return register

    def rule_of_stack(self, about: About) -> Callable[[Whole], Whole]:
        """Decorate a rule about the stack as a whole."""

        def register(check: Whole) -> Whole:
            self.add(_rule(about, check.__doc__, whole=check))
            return check

        return register


def _rule(about: About, title: str | None, **check: Any) -> Rule:
    return Rule(**vars(about), title=rulebook.one_line(title), **check)


CATALOGUE = Catalogue("MLS")


def in_order(rules: Mapping[str, Rule]) -> list[Rule]:
    """Rules by group and number."""
    return sorted(rules.values(), key=lambda rule: rule.id)
