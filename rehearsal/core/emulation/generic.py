"""Outputs of types that no table describes: plausible values under the names that the SDK knows.

Computed values have the format that their name suggests; their content has no meaning.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties
from rehearsal.core.schema import ResourceSchema

# Pattern of property names and the template of their values; the first match is used.
Forms = Sequence[tuple[re.Pattern[str], str]]
_EMPTY: dict[str, type] = {"bool": bool, "int": int, "float": float, "list": list, "map": dict}


def plausible(schema: ResourceSchema, seed: str, forms: Forms, values: Mapping[str, Any]) -> Properties:
    """A value for every output that is no input; deterministic for a `seed`, except for times."""
    service, _, rest = schema.token.partition(":")[2].partition("/")
    known = {**values, "service": service, "kind": rest.partition(":")[0].lower()}
    found: Properties = {}
    for name, form in schema.outputs.items():
        if name in schema.inputs or name in ("id", "urn"):
            continue
        if form == "str":
            template = next((text for pattern, text in forms if pattern.search(name)), "{kind}-{hex10}")
            found[name] = expand(template, f"{seed}/{name}", known)
        elif form in _EMPTY:
            found[name] = _EMPTY[form]()
    return found
