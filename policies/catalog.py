"""Rules and their catalog.

A rule is a function on plain resources that yields violations. It raises NotApplicableError, with the reason,
for a resource that it does not judge; reading an unknown value raises UndeterminedError.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from infra import rulebook
from policies.resource import Resource
from policies.severity import Severity
from policies.stack import Stack

Scope = Literal["resource", "stack"]
Texts = tuple[str, ...]


class NotApplicableError(Exception):
    """The rule does not judge this resource or stack; the text is the reason, as part of a sentence."""


@dataclass(frozen=True)
class Violation:
    """Violation of a rule: the finding, its property, and the fix.

    `fix` replaces the rule's remediation. A rule of the whole stack may name the `resource`.
    """

    message: str
    path: str = ""
    fix: str = ""
    resource: Resource | None = None


Alone = Callable[[Resource], Iterator[Violation]]
Around = Callable[[Resource, Stack], Iterator[Violation]]
Whole = Callable[[Stack], Iterator[Violation]]
Check = TypeVar("Check", Alone, Around, Whole)


@dataclass(frozen=True)
class RuleInfo:
    """Metadata of a rule. Its title is the docstring of its function."""

    id: str
    severity: Severity
    kinds: tuple[str, ...]
    """Resource types that it judges; a rule of the whole stack needs at least one of them."""
    rationale: str
    """Reason for the rule."""
    remediation: str
    """Fix of a violation."""
    references: tuple[str, ...] = ()
    """The same rule in other catalogs, such as "CKV_AWS_24"; only references that were read there."""


@dataclass(frozen=True)
class PolicyRule(RuleInfo):
    """A rule with its function: exactly one of `alone`, `around` and `whole`."""

    title: str = field(kw_only=True)
    """Condition that the rule checks, as a sentence."""
    alone: Alone | None = None
    around: Around | None = None
    whole: Whole | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds, under the name that a rule book uses."""
        return self.kinds

    @property
    def scope(self) -> Scope:
        """`resource` if the rule judges a resource without its stack."""
        return "resource" if self.alone else "stack"

    @property
    def group(self) -> str:
        """The part of the id that names its subject, such as NET."""
        return self.id.split("-")[1]


class RuleCatalog(rulebook.RuleBook[PolicyRule]):
    """Rules of the policies, by id."""

    def rule(  # noqa: PLR0917 - the fields of RuleInfo
        self, id: str, severity: Severity, kinds: Texts, rationale: str, remediation: str, refs: Texts = ()
    ) -> Callable[[Alone], Alone]:
        """Register a rule that judges one resource without its stack."""
        return self._register("alone", RuleInfo(id, severity, kinds, rationale, remediation, refs))

    def rule_around(  # noqa: PLR0917 - the fields of RuleInfo
        self, id: str, severity: Severity, kinds: Texts, rationale: str, remediation: str, refs: Texts = ()
    ) -> Callable[[Around], Around]:
        """Register a rule that judges one resource within its stack."""
        return self._register("around", RuleInfo(id, severity, kinds, rationale, remediation, refs))

    def rule_of_stack(  # noqa: PLR0917 - the fields of RuleInfo
        self, id: str, severity: Severity, kinds: Texts, rationale: str, remediation: str, refs: Texts = ()
    ) -> Callable[[Whole], Whole]:
        """Register a rule that judges the whole stack."""
        return self._register("whole", RuleInfo(id, severity, kinds, rationale, remediation, refs))

    def _register(self, way: str, info: RuleInfo) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            named: dict[str, Any] = {way: check}
            self.add(PolicyRule(**vars(info), title=rulebook.one_line(check.__doc__), **named))
            return check

        return register


CATALOG = RuleCatalog("MLS")


def in_order(rules: Mapping[str, PolicyRule]) -> list[PolicyRule]:
    """Rules by group and number."""
    return sorted(rules.values(), key=lambda rule: rule.id)
