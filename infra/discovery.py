"""Finds the modules of a package, so that new files of services or rules need no registration."""

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any


def modules(package: str) -> Iterator[ModuleType]:
    """Every module below a package, imported, in the order of their names."""
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        yield importlib.import_module(found.name)


@functools.cache
def gathered(package: str, attribute: str) -> Mapping[str, Any]:
    """The mappings of this name of every module below a package, as one.

    Raises ValueError for a key that two modules have.
    """
    merged: dict[str, Any] = {}
    for module in modules(package):
        own = getattr(module, attribute, {})
        twice = sorted(merged.keys() & own.keys())
        if twice:
            raise ValueError(f"{module.__name__}.{attribute}: {', '.join(twice)} is in another module too")
        merged.update(own)
    return merged
