"""Coverage of a rehearsal: resource types and functions that are not emulated, or by schema only."""

import re
from collections.abc import Iterable

from rehearsal.aws.table import TABLE as AWS
from rehearsal.gcp.table import TABLE as GCP

# Messages of this package and of the engine, with what is not emulated.
_LACKS = (
    (r"does not know the function ([\w:/.-]+\w)", "function"),
    (r"function ([\w:/.-]+\w) is not emulated", "function"),
    (r"has no type ([\w:/.-]+\w)", "resource type"),
    (r"no resource plugin '?(?:pulumi-resource-)?([\w-]+)", "package"),
    (r"[Cc]ould not (?:load|find) plugin (?:for )?'?(?:pulumi-resource-)?([\w-]+)", "package"),
)


def lacking(errors: Iterable[str]) -> list[str]:
    """Extract from errors what is not emulated, such as `function aws:ec2/getSpotPrice:getSpotPrice`."""
    found = [
        f"{kind} {name}"
        for error in errors
        for pattern, kind in _LACKS
        for name in re.findall(pattern, re.sub(r"\s+", " ", error))
    ]
    return sorted(set(found))


def by_schema_only(types: Iterable[str]) -> list[str]:
    """Types without rules of their own: validated by the SDK, stored, with plausible ids."""
    tables = {table.package: table.rows for table in (AWS, GCP)}
    return sorted({one for one in types if one not in tables.get(one.partition(":")[0], (one,))})
