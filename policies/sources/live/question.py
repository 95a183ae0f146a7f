"""What a collector asks a cloud, and what it hears. Questions are data: who asks them is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCOUNT, REGION = "$account", "$region"
"""Stand in `given` for the number of the account, or the project, and for the region that is asked about."""


@dataclass(frozen=True)
class Question:
    """One operation of a cloud's API that lists or describes; it never changes anything."""

    service: str
    """As the SDK calls it, such as `ec2`."""
    operation: str
    """As the API calls it, such as `DescribeVolumes`."""
    key: str = ""
    """Where the items are in an answer; empty where the answer is the one item."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that are always the same."""
    of: str = ""
    """The name of another question: this one is asked for each of its items."""
    by: Mapping[str, str] = field(default_factory=dict)
    """By parameter: the path of its value in that item (see `View`)."""
    unset: tuple[str, ...] = ()
    """Codes of errors that mean that nothing of the kind is set."""
    right: str = ""
    """The action that has to be allowed, where it is not SERVICE:OPERATION."""
    region: str = ""
    """Where it is asked, of a service that answers in one region only."""
    label: str = ""
    """Tells apart two questions with the same operation."""

    @property
    def name(self) -> str:
        """Under which its answers are kept."""
        return f"{self.service}.{self.operation}" + (f"/{self.label}" if self.label else "")


@dataclass(frozen=True)
class Refusal:
    """A question that was not answered."""

    code: str
    """The service's own, such as AccessDeniedException."""
    message: str
    action: str
    """The right that the question needs."""
    asked: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.action} was not answered ({self.code})"


@dataclass(frozen=True)
class Item:
    """One thing that a question brought, and the parameters with which it was asked."""

    answer: Any
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """Everything that one question brought."""

    items: tuple[Item, ...] = ()
    refusals: tuple[Refusal, ...] = ()
