"""Properties of the provider as the API has them, by botocore's model of the service.

What both call alike is found by its name; what they do not is said by who makes a resource. The tables that
tests judge play no part in it.
"""

import functools
from collections.abc import Mapping
from typing import Any

import botocore.session

Names = Mapping[str, str]
"""By member of the API: the property of the provider, where they differ."""


@functools.cache
def model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def asked(service: str, operation: str, props: Mapping[str, Any], names: Names | None = None) -> Any:
    """What an operation takes of these properties."""
    return _of(model(service).operation_model(operation).input_shape, props, names or {})


def reported(service: str, shape: str, props: Mapping[str, Any], names: Names | None = None) -> Any:
    """What an answer says of these properties, in a shape of the service."""
    return _of(model(service).shape_for(shape), props, names or {})


def _of(shape: Any, value: Any, names: Names) -> Any:
    kind = shape.type_name
    if kind == "structure" and isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        value = value[0]  # the provider has a list of one
    if kind == "structure" and isinstance(value, Mapping):
        given = {_plain(name): one for name, one in value.items()}
        found = {
            member: given.get(_plain(names.get(member, member)))
            for member in shape.members
            if member.lower() != "tags"
        }
        return {
            member: _of(shape.members[member], one, names)
            for member, one in found.items()
            if one not in (None, "", [])
        }
    if kind == "structure":  # the provider leaves out an object that holds a single list
        ((member, inside),) = shape.members.items()
        return {member: _of(inside, value, names)}
    if kind == "list":
        return [_of(shape.member, one, names) for one in (value if isinstance(value, list) else [value])]
    return _scalar(kind, value)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "boolean":
        return value in (True, "true")
    if kind in ("integer", "long"):
        return int(value)
    if kind in ("double", "float"):
        return float(value)
    return str(value) if kind == "string" else value


def _plain(name: str) -> str:
    """`SubnetIds`, `subnetIds` and `subnetId` are one."""
    return name.lower().removesuffix("s")


def tagged(service: str, operation: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Tags in the form that an operation takes; nothing where it takes none."""
    members = model(service).operation_model(operation).input_shape.members
    name = next((one for one in members if one.lower() == "tags"), None)
    if name is None or not tags:
        return {}
    shape = members[name]
    if shape.type_name == "map":
        return {name: dict(tags)}
    key, value = (next(one for one in shape.member.members if word in one) for word in ("Key", "Value"))
    return {name: [{key: one, value: tags[one]} for one in tags]}
