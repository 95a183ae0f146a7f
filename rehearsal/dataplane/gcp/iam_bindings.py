"""Evaluation of the IAM bindings of emulated resources."""

import fnmatch
import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State

# A member with every permission, without a binding.
EVERYTHING = "rehearsal:everything"
_CUSTOM = "gcp:projects/iAMCustomRole:IAMCustomRole"
_OF_PROJECTS = ("gcp:projects/iAMMember:IAMMember", "gcp:projects/iAMBinding:IAMBinding")
# IAM of a single resource: the type, and the property that names the resource.
_OF_RESOURCES: Mapping[str, str] = {
    "gcp:secretmanager/secretIamMember:SecretIamMember": "secretId",
    "gcp:secretmanager/secretIamBinding:SecretIamBinding": "secretId",
    "gcp:serviceaccount/iAMMember:IAMMember": "serviceAccountId",
    "gcp:serviceaccount/iAMBinding:IAMBinding": "serviceAccountId",
    "gcp:storage/bucketIAMMember:BucketIAMMember": "bucket",
    "gcp:storage/bucketIAMBinding:BucketIAMBinding": "bucket",
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember": "bucket",
    "gcp:pubsub/topicIAMMember:TopicIAMMember": "topic",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": "cryptoKeyId",
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember": "name",
    "gcp:iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember": "cloudRunServiceName",
}
_TERM = re.compile(r'resource\.name(?P<starts>\.startsWith\(|\s*==\s*)"(?P<value>[^"]*)"\)?')


def allowed(state: State, members: Collection[str], permission: str, record: Record, name: str) -> bool:
    """Return whether one of `members` has a permission on a resource, by its own or its project's bindings.

    `name` is the resource name for conditions. Of conditions, comparisons of `resource.name` are evaluated,
    joined by `&&` or `||`; a binding with another condition does not allow. Not evaluated: deny policies,
    bindings of folders and organisations, and predefined roles that `roles.toml` does not list.
    """
    if EVERYTHING in members:
        return True
    for binding in (*_of_project(state, record), *_of_resource(state, record)):
        if permits(state, binding, members, permission) and holds(binding.get("condition"), name):
            return True
    return False


def allowed_object(
    state: State, members: Collection[str], permission: str, bucket: Record, name: str
) -> bool:
    """Return whether one of `members` has a permission on an object of a bucket, or on the prefix `name`.

    Like `allowed`; bindings of a managed folder apply to the objects below it.
    """
    if EVERYTHING in members:
        return True
    full = f"projects/_/buckets/{bucket.id}" + (f"/objects/{name}" if name else "")
    for binding in (*_of_project(state, bucket), *_of_resource(state, bucket)):
        below = str(binding.get("managedFolder") or "")
        meant = name.startswith(below) and permits(state, binding, members, permission)
        if meant and holds(binding.get("condition"), full):
            return True
    return False


def allowed_in_project(state: State, members: Collection[str], permission: str, project: str) -> bool:
    """Return whether one of `members` has a permission in a project, by bindings without a condition."""
    return EVERYTHING in members or any(
        permits(state, binding, members, permission) and binding.get("condition") is None
        for binding in _bound(state, project)
    )


def allowed_by_project(
    state: State, members: Collection[str], permission: str, project: str, name: str
) -> bool:
    """Return whether a project's own bindings give one of `members` a permission on a resource."""
    return EVERYTHING in members or any(
        permits(state, binding, members, permission) and holds(binding.get("condition"), name)
        for binding in _bound(state, project)
    )


def may_somewhere(state: State, members: Collection[str], permission: str, bucket: Record) -> bool:
    """Return whether one of `members` has a permission anywhere in a bucket, whatever the conditions."""
    bindings = (*_of_project(state, bucket), *_of_resource(state, bucket))
    return EVERYTHING in members or any(permits(state, one, members, permission) for one in bindings)


def permits(state: State, binding: Mapping[str, Any], members: Collection[str], permission: str) -> bool:
    """Return whether a binding names one of the members and its role has the permission."""
    named = {binding.get("member"), *(binding.get("members") or ())}
    return any(one in named for one in members) and has(state, str(binding.get("role")), permission)


def has(state: State, role: str, permission: str) -> bool:
    """Return whether a role has a permission."""
    known = _roles().get(role)
    if known is None:
        custom = (one for one in state.find(type=_CUSTOM) if role in (one.id, one.outputs.get("name")))
        known = [str(one) for record in custom for one in record.inputs.get("permissions") or ()]
    return any(fnmatch.fnmatchcase(permission, pattern) for pattern in known)


def holds(condition: Any, name: str) -> bool:
    """Return whether a condition holds for a resource; True without one, False for an unknown form."""
    if not isinstance(condition, Mapping):
        return True
    return any(
        all(_true(term.strip(), name) for term in alternative.split("&&"))
        for alternative in str(condition.get("expression") or "").split("||")
    )


def _true(term: str, name: str) -> bool:
    found = _TERM.fullmatch(term)
    if found is None:
        return False
    return name.startswith(found["value"]) if "(" in found["starts"] else name == found["value"]


def _of_project(state: State, record: Record) -> Iterator[Mapping[str, Any]]:
    return _bound(state, str(record.outputs.get("project") or record.scope))


def _bound(state: State, project: str) -> Iterator[Mapping[str, Any]]:
    for token in _OF_PROJECTS:
        for one in state.find(type=token):
            if str(one.outputs.get("project")).removeprefix("projects/") == project:
                yield one.inputs


def _of_resource(state: State, record: Record) -> Iterator[Mapping[str, Any]]:
    for reference in state.users(record):
        if _OF_RESOURCES.get(reference.user.type) == reference.path:
            yield reference.user.inputs


@functools.cache
def _roles() -> Mapping[str, Iterable[str]]:
    found: Mapping[str, Iterable[str]] = tomllib.loads(Path(__file__).with_name("roles.toml").read_text())[
        "roles"
    ]
    return found
