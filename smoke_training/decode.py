"""JSON values into frozen dataclasses, checked against their type hints (pure)."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any


def decode(hint: Any, value: Any) -> Any:
    """Turn a JSON value into what `hint` asks for; TypeError names the mismatch. Lists become tuples."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else decode(next(a for a in arguments if a is not type(None)), value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, value)
    if origin in (tuple, list):
        return origin(decode(arguments[0], item) for item in _expect(list, value))
    if origin is Mapping:
        return {key: decode(arguments[1], item) for key, item in _expect(dict, value).items()}
    whole = hint is float and isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole else _expect(hint, value)


def _record(hint: type, value: Any) -> Any:
    hints = typing.get_type_hints(hint)
    unknown = set(_expect(dict, value)) - set(hints)
    if unknown:
        raise TypeError(f"{hint.__name__} has no {', '.join(sorted(unknown))}")
    return hint(**{key: decode(hints[key], item) for key, item in value.items()})


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value
