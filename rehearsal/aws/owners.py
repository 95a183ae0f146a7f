"""Objects of AWS that several resources describe: `owners.toml`, rules of security groups, and tags."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.aws.rules.network.older_groups import DEFAULT, GROUP, RULE, protocol_of
from rehearsal.core.emulation.entries import Entries, Facet, Key, Relation, relations
from rehearsal.core.emulation.site import BaseSite
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import known

FILE = Path(__file__).with_name("owners.toml")
_SOURCE = (
    "hashicorp/terraform-provider-aws internal/service/ec2/vpc_security_group.go (securityGroupIPPermGather)"
)
_WAYS, _TAGGING = ("ingress", "egress"), "tags"
# Peers of a permission -> property of a block, and of the newer type of rule.
_PEERS = {
    "range": ("cidrBlocks", "cidrIpv4"),
    "range6": ("ipv6CidrBlocks", "cidrIpv6"),
    "list": ("prefixListIds", "prefixListId"),
    "group": ("securityGroups", "referencedSecurityGroupId"),
}
# Types that are one tag of something else -> the property that names it.
_TAGS = {
    "ec2/tag:Tag": "resourceId",
    "ecs/tag:Tag": "resourceArn",
    "dynamodb/tag:Tag": "resourceArn",
    "transfer/tag:Tag": "resourceArn",
}


def _permission(one: Mapping[str, Any], protocol: str) -> tuple[str, Any, Any]:
    """Protocol and ports; a rule for all protocols has no ports."""
    name = protocol_of(one.get(protocol))
    return (name, None, None) if name == "-1" else (name, one.get("fromPort"), one.get("toPort"))


def _peers(one: Mapping[str, Any], group: object) -> Iterator[tuple[str, Any]]:
    """The peers of a block or a rule; the group itself by its id."""
    for kind, (many, single) in _PEERS.items():
        values = one.get(many)
        for value in [*(values if isinstance(values, list) else ()), one.get(single)]:
            if known(value):
                yield kind, value
    if known(one.get("sourceSecurityGroupId")):
        yield "group", one["sourceSecurityGroupId"]
    if one.get("self") is True:
        yield "group", group


@dataclass(frozen=True)
class _Blocks:
    """The rules in the blocks of a group in one direction."""

    type: str
    shows: str
    strict: str = ""
    removes: bool = False
    removable: bool = False
    inside: bool = True

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        blocks = properties.get(self.shows)
        found: Entries = {}
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, Mapping) and known(block.get("protocol")):
                for peer in _peers(block, id):
                    key = (id, self.shows, *_permission(block, "protocol"), *peer)
                    found[key] = {"text": block.get("description")}
        return found

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`."""
        return self.shows in inputs

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        return key[:2] == (id, self.shows)

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`; entries of others are blocks of their own."""
        kept: list[Properties] = []
        seen: set[Key] = set()
        for block in properties.get(self.shows) or ():
            own = self.entries(site, id, {self.shows: [block]})
            left = own.keys() & entries.keys()
            seen |= left
            kept += [block] if left == own.keys() else self._made({key: entries[key] for key in left}, id)
        return {**properties, self.shows: [*kept, *self._made(_without(entries, seen), id)]}

    def _made(self, entries: Entries, id: str) -> list[Properties]:
        """Blocks for entries: one for each protocol, range of ports and description."""
        made: dict[tuple[Any, ...], Properties] = {}
        for key in sorted(entries, key=repr):
            (protocol, first, last, kind, value), text = key[2:], entries[key].get("text")
            block = made.setdefault(
                (protocol, first, last, text),
                {
                    "protocol": protocol,
                    "fromPort": first or 0,
                    "toPort": last or 0,
                    "description": text or "",
                },
            )
            if (kind, value) == ("group", id):
                block["self"] = True
            else:
                block.setdefault(_PEERS[kind][0], []).append(value)
        return list(made.values())


@dataclass(frozen=True)
class _Single:
    """A rule that is a resource."""

    type: str
    way: str = ""
    """Its direction; empty where a property has it."""
    shows: str = ""
    strict: str = ""
    removes: bool = True
    removable: bool = True
    inside: bool = False

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        group, name = properties.get("securityGroupId"), "ipProtocol" if self.way else "protocol"
        if not known(group) or not known(properties.get(name)):
            return {}
        start = (group, self.way or properties.get("type"), *_permission(properties, name))
        return {
            (*start, *peer): {"text": properties.get("description")} for peer in _peers(properties, group)
        }

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`."""
        return True

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        return False

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`; a rule has its own description."""
        text = next((fields.get("text") for fields in entries.values()), None)
        return properties if text == properties.get("description") else {**properties, "description": text}


@dataclass(frozen=True)
class Tagged:
    """The tags of a resource, which its own program lists."""

    type: str
    shows: str = "tagsAll"
    strict: str = ""
    removes: bool = False
    removable: bool = False
    inside: bool = True

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`; a program that lists no tags has none."""
        return True

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        return {(id, key): {"value": value} for key, value in _tags_of(properties).items()}

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        return bool(key[0] == id)

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`; both properties change by what others added, changed or removed."""
        before, tags = _tags_of(properties), {key[1]: fields["value"] for key, fields in entries.items()}
        changed = {key: value for key, value in tags.items() if before.get(key) != value}
        found = dict(properties)
        for name in ("tags", "tagsAll"):
            own = properties.get(name)
            if isinstance(own, dict) or (name == "tags" and "tagsAll" in properties and changed):
                left = {key: value for key, value in (own or {}).items() if key in tags}
                found[name] = {**left, **changed}
        return found


def _tags_of(properties: Properties) -> dict[str, Any]:
    """The tags of a resource: all in its outputs, its own in its inputs."""
    tags = properties.get("tagsAll", properties.get("tags"))
    return tags if isinstance(tags, dict) else {}


@dataclass(frozen=True)
class _Tag:
    """A tag that is a resource."""

    type: str
    shows: str = ""
    strict: str = ""
    removes: bool = True
    removable: bool = True
    inside: bool = False

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        named, key = properties.get(_TAGS[self.type]), properties.get("key")
        if not isinstance(named, str) or not isinstance(key, str):
            return {}
        tagged = (one for one in site.state.issued(named) if "tagsAll" in one.outputs)
        owner = min(tagged, key=lambda one: one.id != named, default=None)
        return {(owner.id if owner else named, key): {"value": properties.get("value")}}

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`."""
        return True

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        return False

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`."""
        value = next((fields["value"] for fields in entries.values()), None)
        return {**properties, "value": value}


def _without(entries: Entries, keys: set[Key]) -> Entries:
    return {key: fields for key, fields in entries.items() if key not in keys}


def _rules() -> Relation:
    groups = [
        _Blocks(token, way, strict) for token, strict in ((GROUP, ""), (DEFAULT, "create")) for way in _WAYS
    ]
    newer = [
        _Single(f"vpc/securityGroup{way.title()}Rule:SecurityGroup{way.title()}Rule", way) for way in _WAYS
    ]
    refused = ("InvalidPermission.Duplicate", "the specified rule {key} already exists")
    return Relation("rules of a security group", [*groups, _Single(RULE), *newer], refused, _SOURCE)


@functools.cache
def _by_type() -> Mapping[str, Sequence[Relation]]:
    found: dict[str, list[Relation]] = {}
    for relation in (*relations(FILE), _rules()):
        for token in {facet.type for facet in relation.facets}:
            found.setdefault(token, []).append(relation)
    return found


@functools.cache
def relations_of(token: str) -> Sequence[Relation]:
    """The relations that a type (with its package) takes part in; any type may have tags."""
    bare = token.partition(":")[2]
    tags: list[Facet] = [_Tag(name) for name in _TAGS]
    facets = tags if bare in _TAGS else [Tagged(bare), *tags]
    return (*_by_type().get(bare, ()), Relation(_TAGGING, facets, None, "internal/service/ec2/tag_gen.go"))


def tagged(site: BaseSite, relation: Relation, keys: Collection[Key]) -> Iterator[tuple[Record, Facet]]:
    """The resources that tags of their own are for: any type has tags."""
    if relation.name == _TAGGING and site.call.type.partition(":")[2] in _TAGS:
        for owner in {key[0] for key in keys}:
            for record in site.state.issued(owner):
                if record.id == owner and "tagsAll" in record.outputs:
                    yield record, Tagged(record.type.partition(":")[2])
