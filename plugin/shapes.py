"""Types of arguments and outputs of components, read from their type hints."""

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, ForwardRef, Literal, NotRequired, Required, Union, get_args, get_origin, is_typeddict

import pulumi

from infra.stackspec.supported import CLOUDS


class Kind(Enum):
    """A kind of value; scalar kinds have the names of JSON Schema."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ANY = "any"
    LIST = "array"
    MAP = "map"
    RECORD = "object"


# Arguments that only the stack program can give, because they are read from its cloud or its other parts.
_INTERNAL = {
    "AwsCpuPoolArgs": ("live",),
    "AwsDatabaseArgs": ("last_snapshot",),
    "AwsGpuPoolArgs": ("live",),
    "AwsTrackingArgs": ("door", "last_snapshot"),
    "FlavorArgs": ("pod",),
    "GcpDatabaseArgs": ("formerly_below", "last_backup"),
    "GcpNetworkObjectsArgs": ("formerly",),
    "GcpTrackingArgs": ("last_backup",),
    "NodeOffer": ("pod",),
    "QueueingArgs": ("before",),
    "SystemPoolArgs": ("live",),
}
_SCALARS = {str: Kind.STRING, int: Kind.INTEGER, float: Kind.NUMBER, bool: Kind.BOOLEAN}


class UnsupportedTypeError(Exception):
    """A type hint that has no counterpart in a Pulumi schema."""


@dataclass(frozen=True)
class ValueType:
    """A type: `inner` of a list or map, `record` of an object, `choices` of a string.

    `late` values may be outputs of other resources, which are unknown in a preview; others must be plain.
    """

    kind: Kind
    late: bool = False
    inner: "ValueType | None" = None
    record: "Record | None" = None
    choices: tuple[str, ...] = ()
    made: type | None = None
    """The enumeration or dataclass that a value becomes in Python; None: the value itself."""


@dataclass(frozen=True)
class Field:
    """A property: its name in Python, its type and its docstring."""

    name: str
    shape: ValueType
    required: bool
    text: str

    @property
    def public(self) -> str:
        """The name in other languages."""
        return camel(self.name)


@dataclass(frozen=True)
class Record:
    """A TypedDict, or the outputs of a component; `cloud` is the folder that it comes from."""

    name: str
    text: str
    cloud: str
    fields: tuple[Field, ...] = field(compare=False)

    def public(self) -> dict[str, Field]:
        """Name in other languages -> field."""
        return {one.public: one for one in self.fields}


def camel(name: str) -> str:
    """The name of a property in other languages: `vpc_id` is `vpcId`."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


@cache
def record(owner: type) -> Record:
    """The fields of a TypedDict or dataclass. Raises UnsupportedTypeError."""
    if is_typeddict(owner):
        optional = set(owner.__dict__["__optional_keys__"])
    else:
        optional = {one.name for one in fields(owner) if one.default is not MISSING}
    texts = _docstrings(owner)
    found = tuple(
        Field(name, _field_shape(hint, owner, name), name not in optional, texts.get(name, ""))
        for name, hint in inspect.get_annotations(owner).items()
        if name not in _INTERNAL.get(owner.__name__, ())
    )
    return Record(owner.__name__, _text(owner.__doc__), _cloud(owner), found)


def arguments(component: type[pulumi.ComponentResource]) -> Record:
    """The fields of the argument `args` of a component."""
    return record(inspect.get_annotations(component.__init__)["args"])


def outputs(component: type[pulumi.ComponentResource]) -> Record:
    """The attributes that a component annotates: those that it registers."""
    texts = _docstrings(component)
    fields = tuple(
        Field(
            name,
            _field_shape(_without_none(hint), component, name),
            _without_none(hint) is hint,
            texts.get(name, ""),
        )
        for name, hint in inspect.get_annotations(component).items()
    )
    return Record(component.__name__, _text(component.__doc__), _cloud(component), fields)


def _field_shape(hint: Any, owner: type, name: str) -> ValueType:
    try:
        return _shape(hint)
    except UnsupportedTypeError as error:
        raise UnsupportedTypeError(f"{owner.__name__}.{name}: {error}") from None


def _shape(hint: Any) -> ValueType:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (NotRequired, Required):
        return _shape(parts[0])
    if origin is pulumi.Output:
        return _late(_shape(parts[0]))
    plain = _of_input(hint)
    if plain is not None:
        return _late(_shape(plain))
    if _without_none(hint) is not hint:
        return _shape(_without_none(hint))
    if origin in (list, Sequence):
        return ValueType(Kind.LIST, inner=_shape(parts[0]))
    if origin in (dict, Mapping) and (parts[0] is str or get_origin(parts[0]) is Literal):
        return ValueType(Kind.MAP, inner=_shape(parts[1]))
    if origin is Literal and all(isinstance(one, str) for one in parts):
        return ValueType(Kind.STRING, choices=parts)
    if hint in _SCALARS:
        return ValueType(_SCALARS[hint])
    if hint is Any or hint is object:
        return ValueType(Kind.ANY)
    if is_typeddict(hint):
        return ValueType(Kind.RECORD, record=record(hint))
    if is_dataclass(hint) and isinstance(hint, type):
        return ValueType(Kind.RECORD, record=record(hint), made=hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ValueType(Kind.STRING, choices=tuple(str(one.value) for one in hint), made=hint)
    raise UnsupportedTypeError(f"{hint} has no counterpart in a schema")


def _late(shape: ValueType) -> ValueType:
    return replace(shape, late=True)


def _of_input(hint: Any) -> Any:
    """`T` of a `pulumi.Input[T]`, else None."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    if not any(isinstance(one, ForwardRef) or get_origin(one) is pulumi.Output for one in parts):
        return None
    return next((get_args(one)[0] for one in parts if get_origin(one) is Awaitable), None)


def _without_none(hint: Any) -> Any:
    """`T` of a `T | None`, else the hint itself."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    rest = [one for one in parts if one is not types.NoneType]
    return rest[0] if len(rest) == 1 and len(parts) == 2 else hint


def _cloud(owner: type) -> str:
    """The cloud below whose folder a module is, else nothing."""
    parts = owner.__module__.split(".")
    return next((part for part in parts if part in CLOUDS), "")


def _docstrings(owner: type) -> dict[str, str]:
    """The docstrings below the attributes of a class and of those that it inherits from."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError):
        return {}
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    names = vars(sys.modules[owner.__module__])
    bases = [names[base.id] for base in definition.bases if isinstance(base, ast.Name)]
    found = {name: text for base in bases if is_typeddict(base) for name, text in _docstrings(base).items()}
    above = ""
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = node.target.id
        elif above and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found[above] = _text(str(node.value.value))
    return found


def _text(docstring: str | None) -> str:
    return inspect.cleandoc(docstring or "")
