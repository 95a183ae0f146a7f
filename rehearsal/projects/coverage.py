"""Coverage of a rehearsal: which resource types are emulated, known by their schema only, or unknown."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from rehearsal.aws.table import TABLE as AWS
from rehearsal.aws.table import canonical
from rehearsal.core.packages import PACKAGES
from rehearsal.gcp.table import TABLE as GCP
from rehearsal.helpers import random_values, tls
from rehearsal.projects.sdk_index import resource_types

# Messages of this package and of the engine, with what is not emulated.
_LACKS = (
    (r"does not know the function ([\w:/.-]+\w)", "function"),
    (r"function ([\w:/.-]+\w) is not emulated", "function"),
    (r"has no type ([\w:/.-]+\w)", "resource type"),
    (r"no resource plugin '?(?:pulumi-resource-)?([\w-]+)", "package"),
    (r"[Cc]ould not (?:load|find) plugin (?:for )?'?(?:pulumi-resource-)?([\w-]+)", "package"),
)
_TABLES = {table.package: table.rows for table in (AWS, GCP)}
_MAKERS = {"random": random_values.MAKERS, "tls": tls.MAKERS}


class Standing(StrEnum):
    """Extent to which a rehearsal knows a resource type."""

    EMULATED = "emulated"
    """Rules of its service, its ids and outputs, replacement and deletion."""
    SCHEMA_ONLY = "schema only"
    """Names and types of its properties; ids and outputs are plausible, replacement is guessed."""
    UNKNOWN = "unknown"
    """Nothing: no emulated package has it."""


def standing(token: str) -> Standing:
    """The standing of a resource type. Custom kinds of Kubernetes follow the definition in the cluster."""
    package = token.partition(":")[0]
    if package not in PACKAGES:
        return Standing.UNKNOWN
    current = canonical(token)
    if package in _TABLES:
        if current in _TABLES[package]:
            return Standing.EMULATED
        return Standing.SCHEMA_ONLY if current in resource_types(package) else Standing.UNKNOWN
    if package == "kubernetes":
        return Standing.EMULATED if current in resource_types(package) else Standing.SCHEMA_ONLY
    return Standing.EMULATED if current in _MAKERS[package] else Standing.UNKNOWN


def standings(types: Mapping[str, int]) -> Mapping[Standing, Mapping[str, int]]:
    """Types with the number of their resources, by standing; each standing is there, also an empty one."""
    found: dict[Standing, Counter[str]] = {one: Counter() for one in Standing}
    for token, count in sorted(types.items()):
        found[standing(token)][token] += count
    return found


def is_resource(token: str) -> bool:
    """Return whether a type is one of a provider: the engine's own and dynamic resources have no standing."""
    return not token.startswith(("pulumi:", "pulumi-"))


def lacking(errors: Iterable[str]) -> list[str]:
    """Extract from errors what is not emulated, such as `function aws:ec2/getSpotPrice:getSpotPrice`."""
    found = [
        f"{kind} {name}"
        for error in errors
        for pattern, kind in _LACKS
        for name in re.findall(pattern, re.sub(r"\s+", " ", error))
    ]
    return sorted(set(found))
