"""Plans of a Terraform provider for pairs of configurations that differ in one attribute or block."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import grpc

from tools.provider_protocol import (
    MANY,
    Answer,
    Fields,
    TerraformProvider,
    Unknown,
    attributes,
    blocks,
    empty,
)

SETTINGS = {
    "region": "us-east-1",
    "access_key": "none",
    "secret_key": "none",
    "skip_credentials_validation": True,
    "skip_metadata_api_check": "true",
    "skip_region_validation": True,
    "skip_requesting_account_id": True,
}
"""Settings of the AWS provider with which it reaches no cloud."""
_OWN = ("id", "tags_all", "timeouts")
_TRIES = 16
_TIME = re.compile(r"(_at|date|time|created|updated|modified)$")
# Text of an error -> values that an attribute takes: two that a program gives, and one that is computed.
_FORMS = {
    "Invalid ARN": tuple(f"arn:aws:iam::123456789012:role/{one}" for one in "abc"),
    "valid RFC3339": tuple(f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)),
    "Invalid IAM Policy": tuple(f'{{"Version":"2012-10-17","Id":"{one}","Statement":[]}}' for one in "abc"),
    "valid JSON": tuple(f'{{"key":"{one}"}}' for one in "abc"),
    "uration": ("P1D", "P2D", "P3D"),
    "CIDR": ("10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"),
}
_TARGETS = {
    "target_type": "instance",
    "port": 1,
    "protocol": "HTTP",
    "protocol_version": "HTTP1",
    "vpc_id": "value-a",
}
# Properties without which a type refuses every plan.
_BASES: Mapping[str, dict[str, Any]] = {
    "aws_dynamodb_table": {
        "read_capacity": 1,
        "write_capacity": 1,
        "hash_key": "value-a",
        "attribute": [{"name": "value-a", "type": "S"}],
    },
    "aws_lb_target_group": _TARGETS,
    "aws_alb_target_group": _TARGETS,
    "aws_api_gateway_authorizer": {"authorizer_uri": "value-a"},
    "aws_sns_topic": {"name": "value.fifo", "fifo_topic": True, "fifo_throughput_scope": "Topic"},
    "aws_kinesis_stream": {"shard_count": 1},
    "aws_lambda_function": {"handler": "value-a", "runtime": "value-a"},
    "aws_iot_authorizer": {"token_key_name": "value-a"},
    "aws_kinesis_firehose_delivery_stream": {"destination": "extended_s3"},
    "aws_lightsail_instance": {"availability_zone": "us-east-1a"},
    "aws_elasticache_cluster": {
        "engine": "redis",
        "engine_version": "7.0",
        "node_type": "value-a",
        "num_cache_nodes": 1,
    },
}

_OF_TARGETS = {
    "target_type": ("instance", "ip", "ip"),
    "protocol": ("HTTP", "HTTPS", "HTTPS"),
    "protocol_version": ("HTTP1", "HTTP2", "GRPC"),
}
# Values of attributes on which the plan of a type depends: two that a program gives, and a computed one.
_VALUES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "aws_lb_target_group": _OF_TARGETS,
    "aws_alb_target_group": _OF_TARGETS,
    # The provider ends at an engine or a version that it cannot read.
    "aws_elasticache_cluster": {
        "engine": ("redis", "valkey", "valkey"),
        "engine_version": ("7.0", "7.1", "7.2"),
    },
    "aws_elasticache_replication_group": {"engine_version": ("7.0", "7.1", "7.2")},
}
# Blocks without which a type refuses every plan.
_BLOCKS: Mapping[str, str] = {"aws_kinesis_firehose_delivery_stream": "extended_s3_configuration"}


class Judge:
    """Plans changes of one type; `steady` says whether it replaces nothing where nothing differs.

    Raises grpc.RpcError when the provider ends.
    """

    def __init__(self, provider: TerraformProvider, kind: str) -> None:
        self._provider, self._kind, self.block = provider, kind, provider.schemas[kind]
        self.legacy, self.errors = True, list[str]()
        # Attributes whose planned value differs from the state although nothing changed: hashes of a text.
        self.restless = frozenset[str]()
        self._states: dict[str, Any] = {}
        # Configurations whose creation has no plan: what a plan says of their change may come from that.
        self._unplanned = set[str]()
        self._forms: dict[str, tuple[str, ...]] = dict(_VALUES.get(kind, {}))
        for _ in range(_TRIES):
            plain = self._filled(self.block, [], None, top=True)
            self.steady = self.verdict(plain, plain) in ("none", "update")
            if self.steady or not self._learn():
                break
        self.restless = frozenset(self._differing(plain, plain)) if self.steady else frozenset()

    def needs(self, steps: list[str]) -> bool:
        """Whether a plan is refused without the block."""
        return steps == [_BLOCKS.get(self._kind)]

    def listed(self, steps: list[str]) -> bool:
        """Report an attribute that takes only the values of `_VALUES`."""
        return steps[-1] in _VALUES.get(self._kind, {})

    def places(self, deepest: int = 2) -> Iterator[tuple[list[str], bool, bool]]:
        """(steps, whether it may be left out, whether it is computed) of each attribute that can be given."""
        yield from _places(self.block, [], deepest)

    def pairs(self, steps: list[str], *, optional: bool, computed: bool) -> Iterator[tuple[str, str]]:
        """(kind of change, verdict) for each kind that an attribute can have and that has no error."""
        kinds = [("changed", "a", "b")]
        if optional:
            kinds += [("left out", "a", ""), ("stated", "a", "a") if computed else ("added", "", "a")]
        for kind, old, new in kinds:
            if found := self.change(steps, old, new):
                yield kind, found

    def change(self, steps: list[str], old: str, new: str) -> str:
        """The verdict on a change between two values of `sample`, or without one."""
        form = _form(self.block, steps)
        found = self.between(steps, *(self._sample(steps[-1], form, which) for which in (old, new)))
        if not found and self._learn():
            found = self.between(steps, *(self._sample(steps[-1], form, which) for which in (old, new)))
        return found

    def between(self, steps: list[str], old: Any, new: Any) -> str:
        """The verdict on a change between two values; None is left out."""
        return self.verdict(*(self._filled(self.block, steps, value, top=True) for value in (old, new)))

    def default(self, steps: list[str]) -> Any:
        """The value that the provider plans where one is left out, or None."""
        given = self._sample(steps[-1], _form(self.block, steps), "b")
        answer = self._plan(*(self._filled(self.block, steps, value, top=True) for value in (given, None)))
        found: Any = answer.planned if answer else None
        for name in steps:
            found = found[0] if isinstance(found, list) and found else found
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, str | bool | int | float) and found != given else None

    def removed(self, steps: list[str]) -> tuple[str, str]:
        """The verdicts on a block that is added, and on one that ends."""
        with_block = self._filled(self.block, [*steps, ""], None, top=True)
        without = self._filled(self.block, steps[:-1] and [*steps[:-1], ""], None, top=True)
        return self.verdict(without, with_block), self.verdict(with_block, without)

    def verdict(self, old: dict[str, Any], new: dict[str, Any]) -> str:
        """`none`, `update` or `replace`; empty where the provider has an error."""
        prior, answer = self._state(old), self._plan(old, new)
        if answer is None:
            return ""
        if any(answer.planned.get(name) != prior.get(name) for name in answer.replaces):
            return "" if repr(old) in self._unplanned else "replace"
        return "update" if self._differing(old, new) else "none"

    def _differing(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """The attributes and blocks that the plan changes."""
        prior, answer = self._state(old), self._plan(old, new)
        planned = answer.planned if answer else prior
        same = {name for name in self.restless if old.get(name) == new.get(name)}
        return [name for name in prior if name not in same and planned.get(name) != prior[name]]

    def _plan(self, old: dict[str, Any], new: dict[str, Any]) -> Answer | None:
        prior = self._state(old)
        return self._ask(prior, _proposed(self.block, prior, new), new)

    def _state(self, given: dict[str, Any]) -> dict[str, Any]:
        """The state after `given` was created: what the provider leaves to the cloud has values."""
        key = repr(given)
        if key not in self._states:
            answer = self._ask(None, given, given)
            if answer is None:
                self._unplanned.add(key)
            planned = answer.planned if answer else _with_computed(self.block, given)
            self._states[key] = self._known(self.block, planned)
        return copy.deepcopy(self._states[key])

    def _ask(self, prior: Any, proposed: Any, config: Any) -> Answer | None:
        try:
            answer = self._provider.plan(self._kind, prior, proposed, config)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise
            return None
        self.legacy, self.errors = answer.legacy, answer.errors
        return answer if not answer.errors and isinstance(answer.planned, dict) else None

    def _learn(self) -> bool:
        """Learn from the last errors which values attributes take; return whether that is new."""
        learned = [self._learn_from(error) for error in self.errors]
        return any(learned)

    def _learn_from(self, error: str) -> bool:
        path = re.search(r"Path: \S*?(\w+)\s", f"{error} ")
        name = path[1] if path else "*"
        words = re.search(r"Valid Values: \[([^\]]*)\]", error)
        known = next((forms for text, forms in _FORMS.items() if text in error), None)
        if words and words[1].split():
            one, *more = words[1].split()
            known = (one, more[0] if more else one, more[-1] if more else one)
        if known is None or self._forms.get(name) == known:
            return False
        self._forms[name] = known
        self._states.clear()
        return True

    def _sample(self, name: str, form: Any, which: str) -> Any:
        if not which:
            return None
        learned = "*" if "*" in self._forms and _TIME.search(name) else name
        if form == "string" and learned in self._forms:
            return self._forms[learned]["abc".index(which)]
        return sample(form, which)

    def _filled(self, block: Fields, steps: list[str], value: Any, *, top: bool = False) -> dict[str, Any]:
        """A configuration with what is required, the blocks of `steps`, and a value at their end."""
        found = empty(block)
        for name, form, required, *_ in attributes(block):
            if required:
                found[name] = self._sample(name, form, "a")
        if top:
            found |= copy.deepcopy(_BASES.get(self._kind, {}))
        for name, inner, nesting, lowest in blocks(block):
            wanted = bool(steps) and steps[0] == name
            if wanted or (lowest and not found[name]) or (top and name == _BLOCKS.get(self._kind)):
                item = self._filled(inner, steps[1:] if wanted else [], value)
                found[name] = [item] if nesting in MANY else item
        if len(steps) == 1 and any(name == steps[0] for name, *_ in attributes(block)):
            found[steps[0]] = value
        return found

    def _known(self, block: Fields, planned: dict[str, Any]) -> dict[str, Any]:
        """What is planned, with a value where it is known after the change."""
        found = dict(planned)
        for name, form, *_ in attributes(block):
            if _unknown(found[name]):
                found[name] = {} if name == "tags_all" else self._sample(name, form, "c")
        for name, inner, nesting, _ in blocks(block):
            if found[name] is Unknown:
                found[name] = [] if nesting in MANY else None
            elif nesting in MANY:
                found[name] = [self._known(inner, one) for one in found[name] or []]
            elif isinstance(found[name], dict):
                found[name] = self._known(inner, found[name])
        return found


def _places(block: Fields, above: list[str], deepest: int) -> Iterator[tuple[list[str], bool, bool]]:
    for name, _, required, optional, computed in attributes(block):
        if (required or optional) and (above or name not in _OWN):
            yield [*above, name], optional, computed
    if deepest > 1:
        for name, inner, *_ in blocks(block):
            if name not in _OWN:
                yield from _places(inner, [*above, name], deepest - 1)


def _form(block: Fields, steps: list[str]) -> Any:
    for name in steps[:-1]:
        block = next(inner for one, inner, *_ in blocks(block) if one == name)
    return next(form for name, form, *_ in attributes(block) if name == steps[-1])


def _unknown(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_unknown, value.values() if isinstance(value, dict) else value))
    return value is Unknown


def _with_computed(block: Fields, given: dict[str, Any]) -> dict[str, Any]:
    """`given` with values that are not known where the cloud computes them."""
    found = copy.deepcopy(given)
    for name, _, _, _, computed in attributes(block):
        if computed and found[name] is None:
            found[name] = Unknown
    for name, inner, nesting, _ in blocks(block):
        if nesting in MANY:
            found[name] = [_with_computed(inner, one) for one in found[name]]
        elif found[name] is not None:
            found[name] = _with_computed(inner, found[name])
    return found


def _proposed(block: Fields, prior: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """What Terraform proposes to the provider: computed attributes that are left out keep their values."""
    found = dict(config)
    for name, _, _, _, computed in attributes(block):
        if computed and config[name] is None:
            found[name] = prior[name]
    for name, inner, nesting, _ in blocks(block):
        if nesting in MANY:
            found[name] = [
                _proposed(inner, prior[name][index], one) if index < len(prior[name]) else one
                for index, one in enumerate(config[name])
            ]
        elif config[name] is not None and prior[name] is not None:
            found[name] = _proposed(inner, prior[name], config[name])
    return found


def sample(form: Any, which: str) -> Any:
    """A value of one of Terraform's types, one of two that a program gives, or one that is computed."""
    if form == "string":
        return f"value-{which}"
    if form == "number":
        return {"a": 1, "b": 2}.get(which, 3)
    if form == "bool":
        return which == "a"
    kind, inner = form[0], form[1]
    if kind in ("list", "set"):
        return [sample(inner, which)]
    if kind == "map":
        return {"key": sample(inner, which)}
    return {name: sample(one, which) for name, one in inner.items()} if kind == "object" else None
