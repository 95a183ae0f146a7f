"""Rule book of Google Cloud, and a rule's view of the project."""

from collections.abc import Mapping
from typing import Any, Protocol

from rehearsal.core.model import Properties, Record
from rehearsal.core.rules import model
from rehearsal.core.rules.model import Book


class ProjectView(model.RuleContext, Protocol):
    """A rule's view of the project of a resource."""

    @property
    def project(self) -> str:
        """The project of the resource."""

    @property
    def number(self) -> str:
        """The number of that project."""

    def allows(self, member: str, permission: str, name: str) -> bool:
        """Return whether the project's own bindings give a member a permission on a resource of that name."""

    def effective(self, one: Record | str) -> bool:
        """Return whether an agent (an address), a grant or an instance is as old as its first use needs."""

    @property
    def places(self) -> Properties:
        """Its region, zone and location, as far as they are known."""


BOOK: Book[ProjectView] = Book("GCP")


def items(value: Any) -> list[Any]:
    """The list, or an empty one for a value that is not a list or not yet known."""
    return value if isinstance(value, list) else []


def present(properties: Mapping[str, Any], *names: str) -> list[str]:
    """Names of the properties that have a known value."""
    return [name for name in names if properties.get(name)]


def without_services(value: Any, world: ProjectView) -> Record | None:
    """The network that `value` refers to, if no service networking connection gives it private access.

    Of a Shared VPC, both are in the host project.
    """
    network = world.find(value, "compute/network:Network")
    if network is None or any(world.users(network, "servicenetworking/connection:Connection")):
        return None
    return network


def block(value: Any, *names: str) -> dict[str, Any]:
    """The nested mapping under `names`; empty when it is absent or not known yet."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
