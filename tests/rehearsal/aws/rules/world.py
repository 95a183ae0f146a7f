"""Examples of rules, and the account in which they are checked."""

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.aws.cloud import EmulatedAws
from rehearsal.aws.rules import BOOK
from rehearsal.aws.site import Site, site_of
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from tests.rehearsal.aws.rules.bases import BASES
from tests.rehearsal.driver import Driver

ACCOUNT, REGION = "123456789012", "us-east-1"
DROP = object()  # as a value: the property is omitted
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class Example:
    """`type` with inputs as in BASES but for `refused` violates the rule at `path`; with `accepted` no rule.

    Changes are by property path; `$name` and `$name.property` in texts refer to resources of the account.
    `as_` is the resource that the inputs update.
    """

    type: str
    path: str
    refused: Mapping[str, Any]
    accepted: Mapping[str, Any] = field(default_factory=dict)
    as_: str = ""


def limit(type: str, path: str, good: Any, bad: Any, at: str = "", **more: Any) -> Example:
    """An example about the value of one property; `at` is its path in violations, `more` goes with both."""
    return Example(type, at or path, {**more, path: bad}, {**more, path: good})


def trust(*services: str, actions: Any = "sts:AssumeRole", source: str = "") -> str:
    """A trust policy for services, on demand where they act for a source."""
    statement = {"Effect": "Allow", "Action": actions, "Principal": {"Service": list(services)}}
    if source:
        statement["Condition"] = {"ArnLike": {"aws:SourceArn": source}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def policy(**changes: Any) -> str:
    """A policy document of one statement."""
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **changes}
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [{k: v for k, v in statement.items() if v is not DROP}]}
    )


class World(Driver):
    """An account with a network, clusters, file systems and buckets."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("aws", state, EmulatedAws(state, schemas, folder), {"region": REGION})
        self.schemas = schemas

    def site(self, token: str, name: str) -> Site:
        return site_of(self.state, self.call(token, name), {})

    def add(self, token: str, name: str, /, **inputs: Any) -> None:
        self.create(token, name, **self.filled(inputs))

    def filled(self, value: Any) -> Any:
        """A value with `$name` replaced by values of resources."""
        if isinstance(value, Mapping):
            return {name: self.filled(item) for name, item in value.items() if item is not DROP}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        return re.sub(r"\$([a-z0-9_]+)(?:\.(\w+))?", self._held, value)

    def _held(self, match: re.Match[str]) -> str:
        if match.group(1) not in self.made:
            return match.group(0)
        _, key, _, outputs = self.made[match.group(1)]
        return str(outputs[match.group(2)]) if match.group(2) else key

    def broken(self, example: Example, changes: Mapping[str, Any]) -> list[tuple[str, str]]:
        """(rule, path) of every violation of the whole book."""
        token, inputs = f"aws:{example.type}", self.inputs(example, changes)
        alone = BOOK.broken_alone(token, inputs)
        around = BOOK.broken_around(token, inputs, self.site(token, example.as_ or "new"))
        return [(rule.id, violation.path) for rule, violation in (*alone, *around)]

    def inputs(self, example: Example, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The base of the example's type with changes by property path."""
        inputs: Any = json.loads(json.dumps(BASES[example.type]))
        for path, value in changes.items():
            _put(inputs, [name or int(index) for index, name in _STEP.findall(path)], value)
        found: dict[str, Any] = self.filled(inputs)
        return found


def _put(tree: Any, steps: list[Any], value: Any) -> None:
    for step, following in itertools.pairwise(steps):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            while len(tree) <= step:
                tree.append({})
            tree = tree[step]
        else:
            tree = tree.setdefault(step, empty)
    last = steps[-1]
    if isinstance(last, int):
        tree[last : last + 1] = [value]
    else:
        tree[last] = value
