"""Rules by id and by resource type.

Shared by the rules of emulated clouds (requests that a service rejects) and those of the policy pack. Their
input and results differ (ADR 23).
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar


class RuleEntry(Protocol):
    """Attributes of every rule."""

    @property
    def id(self) -> str:
        """A unique id such as AWS-EC2-001."""

    @property
    def types(self) -> tuple[str, ...]:
        """The Pulumi types that the rule checks."""


R = TypeVar("R", bound=RuleEntry)


class RuleBook(Generic[R]):
    """Rules whose ids begin with one prefix, by id and by type."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._rules: dict[str, R] = {}
        self._by_type: dict[str, list[R]] = {}

    @property
    def rules(self) -> Mapping[str, R]:
        """Every rule by its id."""
        return self._rules

    def about(self, type: str) -> list[R]:
        """The rules for a resource type."""
        return self._by_type.get(type, [])

    def add(self, rule: R) -> None:
        """Add a rule. Raises ValueError for an id that is taken or has the wrong prefix."""
        if not rule.id.startswith(f"{self._prefix}-") or rule.id in self._rules:
            raise ValueError(f"rule id {rule.id} is taken or does not start with {self._prefix}-")
        self._rules[rule.id] = rule
        for token in rule.types:
            self._by_type.setdefault(token, []).append(rule)


def one_line(docstring: str | None) -> str:
    """The docstring of a check as the summary of its rule."""
    return " ".join((docstring or "").split())
