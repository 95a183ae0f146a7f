"""What of a stack refuses to be deleted: a destroy is refused for it before anything else is gone."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.errors import Problem

# Switches of the clouds: deletionProtection (EKS, RDS, GKE, Cloud SQL), deletionProtectionEnabled (of
# Cloud SQL, Filestore), enableDeletionProtection (load balancers).
_SWITCH = re.compile(r"(enable)?deletionprotection(enabled)?", re.IGNORECASE)
_FIX = "Set data.protect to false, run `trainstack up`, then destroy."


def protected(resources: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """One problem for each resource of a state that Pulumi or its cloud does not delete.

    The clouds refuse only when it is the turn of the resource itself: a database's comes when what uses it is
    gone. A bucket that holds objects refuses, too; the state does not tell of objects.
    """
    for resource in resources:
        name = str(resource["urn"]).rpartition("::")[2]
        if resource.get("protect"):
            yield Problem(f"{name}.protect", True, "Pulumi deletes no protected resource", _FIX)
        for path in _switches(resource.get("outputs") or {}):
            yield Problem(f"{name}.{path}", True, "the cloud deletes no protected resource", _FIX)


def _switches(value: object, path: str = "") -> Iterator[str]:
    """The paths of all switches that are on."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            if inner is True and _SWITCH.fullmatch(str(key)):
                yield below
            yield from _switches(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _switches(inner, f"{path}[{index}]")
