"""Objects of Google Cloud that several resources describe: `owners.toml`, and the IAM policies of resources.

Of every resource with an IAM policy there are three types: a member of a role, the members of a role (they
remove all others), the whole policy (it removes all else). Source: hashicorp/terraform-provider-google
google/tpgiamresource/resource_iam_member.go, resource_iam_binding.go, resource_iam_policy.go.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.emulation.entries import Entries, Key, Relation, relations
from rehearsal.core.emulation.site import BaseSite
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.gcp.table import TABLE

_IAM = re.compile(
    r"(?P<path>[^:]*(?i:iam))(?:Member|Binding|Policy):(?P<name>.*(?:IAM|Iam))(?P<kind>Member|Binding|Policy)"
)
FILE = Path(__file__).with_name("owners.toml")
_BESIDES = frozenset({"role", "member", "members", "condition", "policyData", "etag", "id"})
_MEMBER, _BINDING, _POLICY = "Member", "Binding", "Policy"
# Members whose case counts. Source: resource_iam_member.go, iamMemberIsCaseSensitive.
_CASED = ("principal:", "principalSet:", "principalHierarchy:")


@dataclass(frozen=True)
class _Iam:
    """One of the three types of a resource's IAM policy."""

    type: str
    kind: str

    @property
    def shows(self) -> str:
        """See `Facet`."""
        return {_BINDING: "members", _POLICY: "policyData"}.get(self.kind, "")

    @property
    def strict(self) -> str:
        """See `Facet`."""
        return "" if self.kind == _MEMBER else "always"

    @property
    def removes(self) -> bool:
        """See `Facet`."""
        return True

    @property
    def removable(self) -> bool:
        """See `Facet`; a role without members and an empty policy are still there."""
        return self.kind == _MEMBER

    @property
    def inside(self) -> bool:
        """See `Facet`."""
        return False

    def stated(self, inputs: Properties) -> bool:
        """See `Facet`."""
        return True

    def entries(self, site: BaseSite, id: str, properties: Properties) -> Entries:
        """See `Facet`."""
        target = self._target(site, properties)
        return {
            (target, binding.get("role"), _condition(binding.get("condition")), _folded(member)): {
                "member": member,
                "condition": binding.get("condition"),
            }
            for binding in _bindings(properties)
            for member in binding.get("members") or ()
            if isinstance(member, str)
        }

    def covers(self, site: BaseSite, id: str, properties: Properties, key: Key) -> bool:
        """See `Facet`."""
        if key[0] != self._target(site, properties):
            return False
        mine = (properties.get("role"), _condition(properties.get("condition")))
        return self.kind == _POLICY or (self.kind == _BINDING and key[1:3] == mine)

    def shown(self, site: BaseSite, id: str, properties: Properties, entries: Entries) -> Properties:
        """See `Facet`."""
        if self.kind == _MEMBER:
            return properties
        own = self.entries(site, id, properties)
        order = [*(key for key in own if key in entries), *sorted(entries.keys() - own.keys(), key=repr)]
        if self.kind == _BINDING:
            return {**properties, "members": [entries[key]["member"] for key in order]}
        bindings: dict[Any, dict[str, Any]] = {}
        for key in order:
            condition = entries[key]["condition"]
            more = {"condition": condition} if condition else {}
            found = bindings.setdefault(key[1:3], {**more, "members": [], "role": key[1]})
            found["members"].append(entries[key]["member"])
        return {**properties, "policyData": json.dumps({"bindings": list(bindings.values())})}

    def _target(self, site: BaseSite, properties: Properties) -> Key:
        """The resource that the policy belongs to: all other properties, with ids for names."""
        refs = TABLE.row(f"{site.package}:{self.type}").refs
        named = {name: value for name, value in properties.items() if name not in _BESIDES and known(value)}
        return tuple(sorted((name, _id(site, value, refs.get(name))) for name, value in named.items()))


def suffix(token: str, inputs: Properties) -> str:
    """The end of the id of members of a role under a condition: they are others than those without one."""
    parts = _condition(inputs.get("condition"))
    return f"/{'/'.join(parts)}" if any(parts) and _IAM.fullmatch(token.partition(":")[2]) else ""


def _bindings(properties: Properties) -> Iterator[Mapping[str, Any]]:
    """The roles with their members that a member, a binding or a policy has."""
    data = properties.get("policyData")
    if isinstance(data, str):
        try:
            found = json.loads(data).get("bindings")
        except (ValueError, AttributeError):
            return
        yield from (one for one in found or () if isinstance(one, dict))
    elif known(properties.get("role")):
        members = properties.get("members")
        yield {
            "role": properties["role"],
            "condition": properties.get("condition"),
            "members": members if isinstance(members, list) else [properties.get("member")],
        }


def _condition(given: Any) -> Key:
    parts = given if isinstance(given, Mapping) else {}
    return tuple(parts.get(name) or "" for name in ("title", "description", "expression"))


def _folded(member: str) -> str:
    return member if member.startswith(_CASED) else member.lower()


def _id(site: BaseSite, value: Any, target: str | None) -> str:
    record = site.find(value, target.partition(":")[2]) if target else None
    text, bare = str(value).removeprefix("b/"), str(value).removeprefix("projects/")
    return record.id if record else bare if "/" not in bare else text


@functools.cache
def _by_type() -> Mapping[str, Sequence[Relation]]:
    found: dict[str, list[Relation]] = {}
    for relation in relations(FILE):
        for token in {facet.type for facet in relation.facets}:
            found.setdefault(token, []).append(relation)
    return found


@functools.cache
def relations_of(token: str) -> Sequence[Relation]:
    """The relations that a type (with its package) takes part in."""
    bare = token.partition(":")[2]
    iam = _IAM.fullmatch(bare)
    if iam is None:
        return _by_type().get(bare, ())
    kinds = (_MEMBER, _BINDING, _POLICY)
    facets = [_Iam(f"{iam['path']}{kind}:{iam['name']}{kind}", kind) for kind in kinds]
    return (Relation("members of roles", facets, None, "google/tpgiamresource"),)
