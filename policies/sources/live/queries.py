"""API queries of a collector and their answers, as data; `trainstack.collect` runs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCOUNT, REGION = "$account", "$region"
"""Placeholders in `given` for the number of the account, or the project, and for the region."""


@dataclass(frozen=True)
class ApiQuery:
    """A read-only operation of a cloud's API that lists or describes."""

    service: str
    """Name in the SDK, such as `ec2`."""
    operation: str
    """Name in the API, such as `DescribeVolumes`."""
    key: str = ""
    """Path of the items in a response; empty if the response is the only item."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Constant parameters."""
    of: str = ""
    """Name of another query: this one runs for each of its items."""
    by: Mapping[str, str] = field(default_factory=dict)
    """By parameter: the path of its value in that item (see `View`)."""
    unset: tuple[str, ...] = ()
    """Error codes that mean that nothing is set."""
    right: str = ""
    """Required permission, if it is not SERVICE:OPERATION."""
    region: str = ""
    """Region of a service with a single endpoint."""
    label: str = ""
    """Distinguishes two queries with the same operation."""

    @property
    def name(self) -> str:
        """Key of its answers."""
        return f"{self.service}.{self.operation}" + (f"/{self.label}" if self.label else "")


@dataclass(frozen=True)
class ApiRefusal:
    """A query that failed."""

    code: str
    """Error code of the service, such as AccessDeniedException."""
    message: str
    action: str
    """Permission that the query needs."""
    asked: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.action} was not answered ({self.code})"


@dataclass(frozen=True)
class AnswerItem:
    """An item of an answer, and the parameters of its query."""

    answer: Any
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """All items and errors of a query."""

    items: tuple[AnswerItem, ...] = ()
    refusals: tuple[ApiRefusal, ...] = ()
