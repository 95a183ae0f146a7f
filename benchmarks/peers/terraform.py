"""Values of a Terraform module: variables, locals, references between resources, policy documents."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.hcl import Block, Call, Opaque, Reference, Template
from policies.resource import UnknownValue, is_unknown, partly

_DOCUMENT = "aws_iam_policy_document"
_ACCOUNT, _REGION = "123456789012", "us-east-1"
BUCKETS = {"aws_s3_bucket": "bucket", "google_storage_bucket": "name"}
"""The attribute that is the name of a bucket, and with it its id."""
_CONDITION = {"test": "", "variable": "", "values": []}


@dataclass
class Module:
    """The blocks of a module, by address."""

    resources: dict[str, Block] = field(default_factory=dict)
    data: dict[str, Block] = field(default_factory=dict)
    locals: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    def add(self, file: Block) -> None:
        """Add what a file defines. Resources with `count = 0` are left out: Terraform makes none."""
        for block in file.blocks:
            address = ".".join(block.labels)
            if block.kind == "resource" and block.attributes.get("count", 1) != 0:
                self.resources[address] = block
            elif block.kind == "data":
                self.data[address] = block
            elif block.kind == "locals":
                self.locals |= block.attributes
            elif block.kind == "variable" and "default" in block.attributes:
                self.variables[address] = block.attributes["default"]


@dataclass
class Evaluation:
    """Evaluates expressions of a module, and notes the addresses of the resources that they use.

    In a `document` an unknown value is written as its own expression: as part of a policy it is still a name
    of something, and checks of Terraform read it so as well.
    """

    module: Module
    used: list[str] = field(default_factory=list)
    document: bool = False
    _depth: int = 0

    def value(self, expression: Any, path: str) -> Any:
        """A plain value, or an UnknownValue."""
        if isinstance(expression, dict):
            found = {key: self.value(one, f"{path}.{key}") for key, one in expression.items()}
            return partly(found)
        if isinstance(expression, list):
            return [self.value(one, f"{path}[{index}]") for index, one in enumerate(expression)]
        if isinstance(expression, Template):
            return self._text([self.value(part, path) for part in expression.parts], path)
        if isinstance(expression, Reference):
            return self._reference(expression.path, path)
        if isinstance(expression, Call):
            return self._call(expression, path)
        return self._unknown(path, expression.text) if isinstance(expression, Opaque) else expression

    def _text(self, parts: list[Any], path: str) -> Any:
        if any(map(is_unknown, parts)):
            return UnknownValue(path, "contains a value that the example does not have")
        return "".join(str(part).lower() if isinstance(part, bool) else str(part) for part in parts)

    def _unknown(self, path: str, name: str) -> Any:
        if self.document:
            return f"({name})"
        return UnknownValue(path, f"is {name}, which the example does not have")

    def _call(self, call: Call, path: str) -> Any:
        if call.name == "jsonencode":
            return json.dumps(self._in_document(lambda: self.value(call.arguments[0], path)))
        arguments = [self.value(one, path) for one in call.arguments]
        if call.name in _FUNCTIONS and not any(map(is_unknown, arguments)):
            return _FUNCTIONS[call.name](*arguments)
        return self._unknown(path, f"{call.name}(...)")

    def _in_document(self, read: Callable[[], Any]) -> Any:
        before, self.document = self.document, True
        try:
            return read()
        finally:
            self.document = before

    def _reference(self, path: tuple[str | int, ...], where: str) -> Any:
        name = ".".join(map(str, path))
        steps = [step for step in path if not isinstance(step, int) and step != "*"]
        head = steps[0]
        if self._depth > 20:
            return self._unknown(where, name)
        self._depth += 1
        try:
            if head == "var" and len(path) > 1 and path[1] in self.module.variables:
                return self._inside(self.value(self.module.variables[str(path[1])], where), path[2:], where)
            if head == "local" and len(path) > 1 and path[1] in self.module.locals:
                return self._inside(self.value(self.module.locals[str(path[1])], where), path[2:], where)
            if head == "data" and len(steps) > 3 and steps[1] == _DOCUMENT and steps[3] == "json":
                block = self.module.data.get(f"{_DOCUMENT}.{steps[2]}")
                if block is not None:
                    return json.dumps(self._in_document(lambda: self.policy(block)))
            address = ".".join(map(str, steps[:2]))
            if len(steps) > 1 and str(head).startswith(("aws_", "google_", "kubernetes_")):
                self.used.append(address)
                return self._attribute(address, [str(step) for step in steps[2:]], where)
        finally:
            self._depth -= 1
        return self._unknown(where, name)

    def _inside(self, value: Any, steps: tuple[str | int, ...], where: str) -> Any:
        for step in steps:
            if is_unknown(value):
                return value
            try:
                value = dict.__getitem__(value, step) if isinstance(value, dict) else value[step]
            except (KeyError, IndexError, TypeError):
                return self._unknown(where, ".".join(map(str, steps)))
        return value

    def _attribute(self, address: str, steps: list[str], where: str) -> Any:
        name = steps[0] if steps else "id"
        block = self.module.resources.get(address)
        if block is None:  # left out of the example: something that exists elsewhere
            return computed(address, ".".join(steps) or "id", address)
        if name in block.attributes and len(steps) == 1 and name != BUCKETS.get(block.labels[0]):
            found = self.value(block.attributes[name], where)
            if not is_unknown(found):
                return found
        return computed(address, ".".join(steps) or "id", self.identity(address))

    def identity(self, address: str) -> str:
        """The id of a resource: a bucket's is its name, unless several of the example have the same."""
        kind = self.module.resources[address].labels[0]
        if kind not in BUCKETS:
            return address
        given = self.module.resources[address].attributes.get(BUCKETS[kind])
        same = [
            other
            for other in self.module.resources.values()
            if other.labels[0] == kind and other.attributes.get(BUCKETS[kind]) == given
        ]
        named = given is not None and len(same) == 1
        return str(self._in_document(lambda: self.value(given, ""))) if named else address

    def policy(self, block: Block) -> dict[str, Any]:
        """The JSON of a policy document of the provider (documentation of aws_iam_policy_document)."""
        found = []
        for path, one in below(block, "statement"):
            given = {key: self.value(value, path) for key, value in one.attributes.items()}
            statement: dict[str, Any] = {"Effect": given.get("effect", "Allow")}
            for key, name in (
                *(("actions", "Action"), ("not_actions", "NotAction")),
                *(("resources", "Resource"), ("not_resources", "NotResource")),
            ):
                if key in given:
                    statement[name] = given[key]
            for kind, name in (("principals", "Principal"), ("not_principals", "NotPrincipal")):
                for _, principal in below(one, kind):
                    who = {key: self.value(value, path) for key, value in principal.attributes.items()}
                    if (who.get("type"), who.get("identifiers")) == ("*", ["*"]):
                        statement[name] = "*"
                    elif not isinstance(statement.get(name), str):
                        listed = statement.setdefault(name, {}).setdefault(str(who.get("type")), [])
                        listed += who["identifiers"] if isinstance(who.get("identifiers"), list) else []
            for _, condition in below(one, "condition"):
                rule = _CONDITION | {
                    key: self.value(value, path) for key, value in condition.attributes.items()
                }
                values = statement.setdefault("Condition", {}).setdefault(str(rule["test"]), {})
                values[str(rule["variable"])] = rule["values"]
            found.append(statement)
        return {"Version": "2012-10-17", "Statement": found}


def computed(address: str, attribute: str, identity: str) -> str:
    """A value for an attribute that only the cloud knows; the same wherever it is used."""
    kind, _, name = address.partition(".")
    if attribute == "id":
        return identity
    if attribute == BUCKETS.get(kind):
        return identity
    if attribute == "arn":
        if kind == "aws_s3_bucket":
            return f"arn:aws:s3:::{identity}"
        service = kind.removeprefix("aws_").partition("_")[0]
        return f"arn:aws:{service}:{_REGION}:{_ACCOUNT}:{kind}/{name}"
    return f"{address}.{attribute}"


def below(block: Block, kind: str) -> Iterator[tuple[str, Block]]:
    """(path, block) of the blocks of a type, also of the content of dynamic ones."""
    for index, one in enumerate(block.blocks):
        if one.kind == kind:
            yield f"{kind}[{index}]", one
        elif one.kind == "dynamic" and one.labels == (kind,):
            yield from ((f"{kind}[{index}]", inner) for inner in one.blocks if inner.kind == "content")


def _merged(*parts: dict[str, Any]) -> dict[str, Any]:
    return partly({key: dict.get(part, key) for part in parts for key in part})


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "concat": lambda *parts: [one for part in parts for one in part],
    "jsondecode": json.loads,
    "lower": lambda text: text.lower(),
    "merge": _merged,
    "tobool": lambda value: value in (True, "true"),
    "tolist": lambda value: value,
    "tomap": lambda value: value,
    "toset": lambda value: value,
    "tostring": lambda value: value if isinstance(value, str) else json.dumps(value),
    "trimspace": lambda text: text.strip(),
    "upper": lambda text: text.upper(),
}
