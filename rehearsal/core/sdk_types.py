"""Reader of resource types in an installed provider SDK, a process of its own for `schema`.

`python -m rehearsal.core.sdk_types aws` reads one resource type per line and writes one line for each: the
JSON form of `schema.ResourceSchema`, or `null` when the SDK does not have that type. The SDK is imported here
and not in the daemon, which stays small and starts fast.
"""

import collections.abc
import enum
import importlib
import inspect
import json
import sys
import types
import typing
from typing import Any

import pulumi
from pulumi import _types as hints
from pulumi.runtime import rpc

_SCALARS: dict[Any, str] = {str: "str", bool: "bool", int: "int", float: "float", Any: "any"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping)
# Classes that describe the same value a second time: as a program holds it, not as the wire format.
_NOT_VALUES = (pulumi.Output, collections.abc.Awaitable)

# A type in JSON: "str", "bool", "int", "float", "any", "asset", {"list": T}, {"map": T}, {"object": name},
# {"one_of": [value, ...]} or {"union": [T, ...]}.
Form = Any


class _Reader:
    """Collects the nested objects of one resource."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def form(self, hint: Any) -> Form:
        """The JSON form of a type hint; an unknown one is "any"."""
        if hint in _SCALARS:
            return _SCALARS[hint]
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self._union(args)
        if origin is typing.Literal:
            return {"one_of": list(args)}
        if origin in _LISTS or origin in _MAPS:
            return {"list" if origin in _LISTS else "map": self.form(args[-1])}
        return self._class(hint) if inspect.isclass(hint) else "any"

    def _union(self, members: tuple[Any, ...]) -> Form:
        forms: list[Form] = []
        for member in members:
            origin = typing.get_origin(member) or member
            if member is type(None) or (inspect.isclass(origin) and issubclass(origin, _NOT_VALUES)):
                continue
            if typing.is_typeddict(member) or (inspect.isclass(origin) and hints.is_output_type(origin)):
                continue
            form = self.form(member)
            if form not in forms:
                forms.append(form)
        if not forms or "any" in forms:
            return "any"
        if "str" in forms:  # `str | SomeEnum`: the SDK does not list every value
            forms = [form for form in forms if not isinstance(form, dict) or "one_of" not in form]
        return forms[0] if len(forms) == 1 else {"union": forms}

    def _class(self, cls: type) -> Form:
        if issubclass(cls, enum.Enum):
            return {"one_of": [member.value for member in cls]}
        if issubclass(cls, pulumi.Asset | pulumi.Archive):
            return "asset"
        if issubclass(cls, pulumi.Resource):
            return "str"
        if not hints.is_input_type(cls):
            return "any"
        name = f"{cls.__module__.partition('.')[2].removesuffix('._inputs')}.{cls.__name__}"
        if name not in self.objects:
            self.objects[name] = {}  # reserved first: objects may contain themselves
            self.objects[name].update(self.properties(cls))
        return {"object": name}

    def properties(self, cls: type) -> dict[str, Any]:
        """Wire name -> {"type", "required"} of a class of input arguments."""
        wire = hints.input_type_py_to_pulumi_names(cls)
        kinds = hints.input_type_types(cls)
        parameters = inspect.signature(cls).parameters
        return {
            wire[python]: {
                "type": self.form(kinds[wire[python]]),
                "required": python in parameters and parameters[python].default is inspect.Parameter.empty,
            }
            for python in wire
            if wire[python] in kinds
        }


def resource_class(token: str) -> type[pulumi.Resource] | None:
    """The SDK's class of a resource type such as `aws:eks/cluster:Cluster`."""
    for module in rpc._RESOURCE_MODULES.get(token.rpartition(":")[0], []):
        info = getattr(module, "mod_info", {})
        name = info.get("classes", {}).get(token)
        if name:
            found: type[pulumi.Resource] = getattr(importlib.import_module(info["fqn"]), name)
            return found
    return None


def describe(token: str) -> dict[str, Any] | None:
    """The JSON form of a resource type's schema, or None when the SDK does not have it."""
    cls = resource_class(token)
    if cls is None:
        return None
    module = sys.modules[cls.__module__]
    names = (f"{cls.__name__}InitArgs", f"{cls.__name__}Args")
    arguments = next((getattr(module, name) for name in names if hasattr(module, name)), None)
    if arguments is None:
        return None
    reader = _Reader()
    inputs = reader.properties(arguments)
    outputs = {name: _coarse(hint) for name, hint in hints.resource_types(cls).items()}
    computed = sorted(
        name for name in _always_present(cls) if name in inputs and not inputs[name]["required"]
    )
    return {"inputs": inputs, "outputs": outputs, "objects": reader.objects, "computed": computed}


def _always_present(cls: type) -> set[str]:
    """Wire names of the outputs whose type is not optional.

    The bridge of Terraform's providers makes an output optional unless the provider computes it (`isOptional`
    in pkg/tfgen/generate.go of pulumi-terraform-bridge). Outputs of nested blocks are all optional in Python.
    """
    found = set()
    for python, value in vars(cls).items():
        if isinstance(value, property) and value.fget is not None:
            hint = typing.get_type_hints(value.fget).get("return")
            inner = typing.get_args(hint)[0] if typing.get_origin(hint) is pulumi.Output else hint
            if type(None) not in typing.get_args(inner):
                found.add(getattr(value.fget, hints._PULUMI_NAME, python))
    return found


def _coarse(hint: Any) -> str:
    """The outline of an output, without nested names."""
    hint = hints.unwrap_type(hint)
    origin = typing.get_origin(hint) or hint
    if origin in _LISTS:
        return "list"
    if hint in _SCALARS:
        return _SCALARS[hint]
    return "map" if inspect.isclass(origin) else "any"


def main() -> None:
    """Write one line for each token read, until the pipe is closed."""
    importlib.import_module(f"pulumi_{sys.argv[1].replace('-', '_')}")
    for line in sys.stdin:
        sys.stdout.write(json.dumps(describe(line.strip())) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
