"""The form of an example: a few resources that pass a rule, and the same with a fault that fails it.

A value that begins with `$` is taken from another resource of the example: `$name` is its id,
`$name.property` a property of it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any


class Drop:
    """Stands for a property that is left out."""


DROP = Drop()


@dataclass(frozen=True)
class Made:
    """One resource of an example."""

    token: str
    props: Mapping[str, Any] = field(default_factory=dict)
    protect: bool = False
    after: Sequence[str] = ()
    """Those that it waits for besides those that it refers to."""

    def but(self, **changes: Any) -> "Made":
        """The same with other properties."""
        merged = {**self.props, **changes}
        props = {key: value for key, value in merged.items() if not isinstance(value, Drop)}
        return replace(self, props=props)


Resources = Mapping[str, Made]


@dataclass(frozen=True)
class Example:
    """What passes a rule and what fails it; `at` names where: a resource's name, or "" for the stack."""

    passing: Resources
    failing: Resources
    at: str
    path: str = ""

    @property
    def digest(self) -> str:
        """Changes with what is made: a record of another digest is out of date."""
        made = [plain(self.passing), plain(self.failing)]
        return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]


def plain(resources: Resources) -> dict[str, Any]:
    """The resources as JSON, for the program that makes them."""
    return {name: asdict(made) for name, made in resources.items()}


def rule_of(key: str) -> str:
    """The rule that an example is about: `MLS-NET-05`, also of `MLS-NET-05.gke`."""
    return key.partition(".")[0]
