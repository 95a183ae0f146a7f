"""One waiver: who answers for which violations, why, and until when."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from policies.resource import Resource, UndeterminedError
from policies.severity import Severity

# A waiver is an exception, not a decision: the more severe the rule, the sooner somebody looks again.
MOST_DAYS: Mapping[Severity, int] = {"critical": 90, "high": 180, "medium": 365, "low": 365}
APPROVERS: Mapping[Severity, int] = {"critical": 2, "high": 1, "medium": 1, "low": 1}
"""Besides the owner: nobody approves what is their own."""
SOON_DAYS = 14

_ANY_URN = "urn:pulumi:a::a::a:a/a:A::a"
_ANY_ARN = "arn:aws:a:a:000000000000:a/a"


@dataclass(frozen=True)
class Selector:
    """Which resources: all that is given has to fit. `*` in `urn` and `arn` stands for any text."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    urn: str = ""
    arn: str = ""
    """Also an id, of what has no ARN."""
    tags: Mapping[str, str] = field(default_factory=dict)
    stack: str = ""
    """Alone it selects what a rule says of the stack as a whole, and none of its resources."""

    @property
    def is_wide(self) -> bool:
        """Whether it fits every resource there can be."""
        narrow = (self.urn and not _like(self.urn, _ANY_URN), self.arn and not _like(self.arn, _ANY_ARN))
        return not (self.tags or self.stack or any(narrow))

    def fits(self, resource: Resource | None, stacks: frozenset[str]) -> bool:
        """Whether it selects a resource, or with None what is said of the stacks by these names."""
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
            return False  # what is not known is not what somebody waived


@dataclass(frozen=True)
class Waiver:
    """What it takes to go on in spite of a violation."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    rule: str
    resource: Selector
    owner: str
    """Who mends it, or asks again."""
    approvers: tuple[str, ...]
    reason: str
    ticket: str
    created: datetime.date
    expires: datetime.date
    """The last day on which it holds."""
    compensating_control: str
    """What keeps the risk small until then."""

    def holds(self, today: datetime.date) -> bool:
        """Whether it has not expired."""
        return today <= self.expires

    def ends_soon(self, today: datetime.date) -> bool:
        """Whether it holds, but not much longer."""
        return self.holds(today) and (self.expires - today).days < SOON_DAYS


def stack_of(resource: Resource) -> str:
    """Name of the stack that a URN names; empty where the source has none."""
    parts = resource.urn.split("::")
    start, ours, name = parts[0].partition("urn:pulumi:")
    return name if ours and not start and len(parts) > 1 else ""


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _names(resource: Resource) -> list[str]:
    return [str(name) for name in (resource.props.get("arn"), resource.id) if name]
