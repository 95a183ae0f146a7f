"""Addresses that Cloud Run holds in a subnetwork after its services are deleted.

Source: Cloud Run documentation, "Direct VPC with a VPC network" (one to two hours).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SERVICE = "gcp:cloudrunv2/service:Service"
_OWN = "-cloud-run-"
_SIGN = "/addresses/serverless-ipv4-"


def announced(resources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each subnetwork of a state that cannot be deleted together with its services."""
    for name in dict.fromkeys(_subnetworks(resources)):
        rest = "Only it and its network, which cost nothing, are left then: destroy again after two hours."
        if _OWN not in name:  # of a stack of an earlier version, where it is deleted before other resources
            rest = (
                "Others may be left with it and bill: run `trainstack up` before, then nothing that bills is."
            )
        yield f"Cloud Run holds addresses in {name} for up to two hours, and this destroy ends there. {rest}"


def explained(errors: Sequence[str]) -> Iterator[str]:
    """The fix for a subnetwork that was not deleted."""
    if any(_SIGN in error for error in errors):
        yield "Cloud Run releases these addresses within two hours: run the same command again after them."


def _subnetworks(resources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for resource in resources:
        template = (resource.get("outputs") or {}).get("template") or {}
        access = template.get("vpcAccess") or {} if resource["type"] == _SERVICE else {}
        for one in access.get("networkInterfaces") or ():
            yield str(one["subnetwork"]).rpartition("/")[2]
