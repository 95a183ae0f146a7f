"""Protected resources of a stack, for which a destroy is refused before it deletes anything."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.errors import Problem

# Switches of the clouds: deletionProtection (EKS, RDS, GKE, Cloud SQL), deletionProtectionEnabled (of
# Cloud SQL, Filestore), enableDeletionProtection (load balancers).
_SWITCH = re.compile(r"(enable)?deletionprotection(enabled)?", re.IGNORECASE)
_CODE = "resource-is-protected"
_FIX = "Set data.protect to false, run `trainstack up`, then destroy."


def protected(resources: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """One problem for each resource of a state that Pulumi or its cloud does not delete.

    Clouds refuse the deletion only when everything that uses the resource has been deleted. Buckets with
    objects are refused as well, but the state does not contain objects.
    """
    for resource in resources:
        name = str(resource["urn"]).rpartition("::")[2]
        if resource.get("protect"):
            yield Problem(f"{name}.protect", True, "Pulumi deletes no protected resource", _FIX, code=_CODE)
        for path in _switches(resource.get("outputs") or {}):
            yield Problem(f"{name}.{path}", True, "the cloud deletes no protected resource", _FIX, code=_CODE)


def _switches(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            if inner is True and _SWITCH.fullmatch(str(key)):
                yield below
            yield from _switches(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _switches(inner, f"{path}[{index}]")
