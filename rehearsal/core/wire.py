"""Conversion of property values between messages of the engine and plain Python."""

from typing import Any

from google.protobuf import struct_pb2

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.validate import FOLDER, SIGNATURE

# The engine's markers; source: sdk/go/common/resource/{properties,sig}.go and plugin/rpc.go of Pulumi 3.259.
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        UNKNOWN_TEXT,  # a string; then bool, number, array, asset, archive, object
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the marker of a secret, not one
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_REFERENCE = "5cf8f73096256a8f31e491e813e4eb8e"


def from_struct(struct: struct_pb2.Struct, folder: str | None = None) -> Properties:
    """Plain Python of a message's properties; secrets are unwrapped, assets stay marked dicts.

    Assets and archives get the folder, if there is one, in which their relative paths begin: the engine
    starts a plugin in the folder of the program. `to_struct` leaves it out again.
    """
    return {name: _from_value(value, folder) for name, value in struct.fields.items()}


def to_struct(properties: Properties) -> struct_pb2.Struct:
    """A message's properties of plain Python."""
    struct = struct_pb2.Struct()
    for name, value in properties.items():
        if name != FOLDER or SIGNATURE not in properties:
            struct.fields[name].CopyFrom(_to_value(value))
    return struct


def _from_value(value: struct_pb2.Value, folder: str | None) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return UNKNOWN if text in _UNKNOWNS else text
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_from_value(item, folder) for item in value.list_value.values]
    if kind == "struct_value":
        return _unwrap(from_struct(value.struct_value, folder), folder)
    return None


def _unwrap(fields: Properties, folder: str | None) -> Any:
    mark = fields.get(SIGNATURE)
    if mark == _SECRET:
        return fields.get("value")
    if mark == _OUTPUT:
        return fields.get("value", UNKNOWN)
    if mark == _REFERENCE:
        return fields.get("id") or fields.get("urn")
    if mark is not None and folder is not None and fields.get("path"):
        fields[FOLDER] = folder
    return fields


def _to_value(value: Any) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if value is UNKNOWN or isinstance(value, str):
        return struct_pb2.Value(string_value=UNKNOWN_TEXT if value is UNKNOWN else str(value))
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, list | tuple):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_to_value(item) for item in value]))
    return struct_pb2.Value(struct_value=to_struct(value))
