"""A state made again in an emulated account, through the API of AWS."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jmespath
from botocore import xform_name

from policies.resource import Resource, is_unknown
from tests.policies.sources.live.remade.modelled import Names, asked, tagged
from tests.trainstack.collect.cloud import REGION

Props = Mapping[str, Any]
ACCOUNT = "123456789012"
_WORD = re.compile(r"[\w-]+")


class Remade:
    """What has been made, and what the account says where the emulation has no words."""

    def __init__(self, service: Callable[[str], Any]) -> None:
        self._service = service
        self.ids: dict[str, str] = {}
        """By what a state calls a thing: what the account calls it."""
        self.rows: dict[str, list[tuple[Any, dict[str, str]]]] = {}
        """By kind: properties and tags of those of which the emulation knows nothing."""

    def make(self, state: Iterable[Resource], makers: "Mapping[str, Maker]") -> None:
        """Make those of a state that are in this region, or in none, for which there is a maker."""
        for one in state:
            if one.kind in makers and not is_unknown(one.id) and one.region in ("", REGION):
                maker = makers[one.kind]
                given = _known(one.props if isinstance(maker, Keeper) else one.asked or {})
                chosen = maker(self, self.renamed({**given, "$id": one.id}), dict(one.tags))
                if chosen:
                    self.ids[one.id] = chosen

    def renamed(self, value: Any) -> Any:
        """A value with the ids of the account, also within texts such as ARNs and policies."""
        if isinstance(value, str):
            return self.ids.get(value) or _WORD.sub(lambda one: self.ids.get(one[0], one[0]), value)
        if isinstance(value, dict):
            return {name: self.renamed(one) for name, one in value.items()}
        return [self.renamed(one) for one in value] if isinstance(value, list | tuple) else value

    def call(
        self, operation: str, props: Props, tags: Props | None = None, names: Names | None = None, **more: Any
    ) -> Any:
        """Ask for what the properties say: `ec2.CreateVpc`. What is in `more` goes before."""
        service, name = operation.split(".")
        given = {**asked(service, name, props, names), **tagged(service, name, tags or {}), **more}
        given = {key: value for key, value in given.items() if value is not None}
        return getattr(self._service(service), xform_name(name))(**given)

    def label(self, id: str, tags: Props) -> None:
        """Tags of what EC2 made."""
        if tags:
            rows = [{"Key": key, "Value": value} for key, value in tags.items()]
            self._service("ec2").create_tags(Resources=[id], Tags=rows)


@dataclass(frozen=True)
class Keeper:
    """Keeps what the emulation does not know, as its state has it, for an answer (see `answers`)."""

    kind: str
    id: Callable[[Props], str] = lambda _: ""
    made: Callable[[Remade, Props], None] = lambda *_: None
    """What is made with it."""

    def __call__(self, remade: Remade, one: Props, tags: dict[str, str]) -> str:
        self.made(remade, one)
        remade.rows.setdefault(self.kind, []).append((one, tags))
        return self.id(one)


Maker = Callable[[Remade, Props, dict[str, str]], str]
"""Makes a resource with these properties and tags; gives the id that the account chose, or nothing."""


def created(operation: str, made: str = "", names: Names | None = None, **more: Any) -> Maker:
    """Made by one operation, which says its id at the path `made`."""

    def make(remade: Remade, one: Props, tags: dict[str, str]) -> str:
        answer = remade.call(operation, one, tags, names, **more)
        chosen = str(jmespath.search(made, answer)) if made else ""
        if operation.startswith("ec2."):
            remade.label(chosen, tags)
        return chosen

    return make


def _known(props: Props) -> dict[str, Any]:
    """Properties without unknown ones and those of the engine itself."""
    return {name: one for name, one in dict(props).items() if not is_unknown(one) and name[:2] != "__"}
