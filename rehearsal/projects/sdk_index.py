"""Resource types of an installed SDK, read from the index in its package; the SDK is not imported."""

import functools
import importlib.util
import json
import re
from pathlib import Path

# The argument of `_utilities.register` in the `__init__.py` of a generated SDK
# (pulumi pkg/codegen/python/gen.go, genInit, v3.259.0).
_INDEX = re.compile(r'resource_modules="""(.*?)"""', re.DOTALL)


@functools.cache
def resource_types(package: str) -> frozenset[str]:
    """Tokens of all resource types of a package, such as `aws:ec2/vpc:Vpc`; empty without its SDK."""
    found = importlib.util.find_spec(f"pulumi_{package.replace('-', '_')}")
    if found is None or found.origin is None:
        return frozenset()
    index = _INDEX.search(Path(found.origin).read_text(encoding="utf-8"))
    modules = json.loads(index[1]) if index else ()
    return frozenset(token for module in modules for token in module["classes"])
