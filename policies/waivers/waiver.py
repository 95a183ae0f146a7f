"""Waiver: owner, violations, reason and expiry date."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from policies.resource import Resource, UndeterminedError
from policies.severity import Severity

# A waiver is temporary: the more severe the rule, the sooner it must be reviewed.
MOST_DAYS: Mapping[Severity, int] = {"critical": 90, "high": 180, "medium": 365, "low": 365}
APPROVERS: Mapping[Severity, int] = {"critical": 2, "high": 1, "medium": 1, "low": 1}
"""Besides the owner, who cannot approve their own waiver."""
SOON_DAYS = 14

_ANY_URN = "urn:pulumi:a::a::a:a/a:A::a"
_ANY_ARN = "arn:aws:a:a:000000000000:a/a"


@dataclass(frozen=True)
class Selector:
    """Selector of resources: all given fields must match. `*` in `urn` and `arn` matches any text."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    urn: str = ""
    arn: str = ""
    """ARN, or the id of a resource without one."""
    tags: Mapping[str, str] = field(default_factory=dict)
    stack: str = ""
    """Without other fields: outcomes about the stack as a whole, not about its resources."""

    @property
    def is_wide(self) -> bool:
        """Return whether it matches every possible resource."""
        narrow = (self.urn and not _like(self.urn, _ANY_URN), self.arn and not _like(self.arn, _ANY_ARN))
        return not (self.tags or self.stack or any(narrow))

    def fits(self, resource: Resource | None, stacks: frozenset[str]) -> bool:
        """Return whether it selects a resource, or for None an outcome about one of the stacks."""
        if resource is None or not (self.urn or self.arn or self.tags):
            return resource is None and self.stack in stacks and not (self.urn or self.arn or self.tags)
        try:
            return (
                (not self.stack or self.stack == stack_of(resource))
                and (not self.urn or _like(self.urn, resource.urn))
                and (not self.arn or any(_like(self.arn, name) for name in _names(resource)))
                and all(resource.tags.get(key) == value for key, value in self.tags.items())
            )
        except UndeterminedError:
            return False  # an unknown value is not waived


@dataclass(frozen=True)
class Waiver:
    """Acceptance of violations of a rule."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    rule: str
    resource: Selector
    owner: str
    """Fixes the violation or renews the waiver."""
    approvers: tuple[str, ...]
    reason: str
    ticket: str
    created: datetime.date
    expires: datetime.date
    """The last day on which it holds."""
    compensating_control: str
    """Measure that limits the risk until then."""

    def holds(self, today: datetime.date) -> bool:
        """Return whether it has not expired."""
        return today <= self.expires

    def ends_soon(self, today: datetime.date) -> bool:
        """Return whether it expires within SOON_DAYS."""
        return self.holds(today) and (self.expires - today).days < SOON_DAYS


def stack_of(resource: Resource) -> str:
    """Name of the stack in a URN; empty for other sources."""
    parts = resource.urn.split("::")
    start, ours, name = parts[0].partition("urn:pulumi:")
    return name if ours and not start and len(parts) > 1 else ""


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _names(resource: Resource) -> list[str]:
    return [str(name) for name in (resource.props.get("arn"), resource.id) if name]
