"""Keys and secrets. Asset Inventory has no values of secrets.

Shapes: google/services/{kms,secretmanager} of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, named, part, short
from policies.sources.live.mapping import One, View, same

_RING, _KEY = "cloudkms.googleapis.com/KeyRing", "cloudkms.googleapis.com/CryptoKey"
_SECRET = "secretmanager.googleapis.com/Secret"  # noqa: S105 - a type
QUERIES = tuple(map(assets, (_RING, _KEY, _SECRET)))


def _usable(view: View) -> bool:
    """Exclude keys with a destroyed version: a key of KMS itself cannot be deleted."""
    return view.at("primary.state") not in ("DESTROYED", "DESTROY_SCHEDULED")


def _ring(view: View) -> str:
    return named(view).rpartition("/cryptoKeys/")[0]


def _replicas(view: View) -> Any:
    """Replica regions; the provider writes automatic replication as `auto`."""
    found = view.at("replication")
    if not isinstance(found, dict):
        return None
    if "userManaged" in found:
        rows = (found["userManaged"] or {}).get("replicas") or ()
        return {"userManaged": {"replicas": [{"location": one.get("location")} for one in rows]}}
    return {"auto": {}} if "automatic" in found else None


KINDS = (
    asset("gcp:kms/keyRing:KeyRing", _RING, {"location": part("locations"), "name": short}, labels=""),
    asset(
        "gcp:kms/cryptoKey:CryptoKey",
        _KEY,
        {
            **same("destroyScheduledDuration", "importOnly", "purpose", "rotationPeriod"),
            "keyRing": _ring,
            "name": short,
            "versionTemplate": One("versionTemplate", same("algorithm", "protectionLevel")),
        },
        when=_usable,
        owned=False,
    ),
    asset(
        "gcp:secretmanager/secret:Secret",
        _SECRET,
        {"replication": _replicas, "secretId": short},
        # Regional secrets are another type (gcp:secretmanager/regionalSecret).
        when=lambda view: "/locations/" not in named(view),
    ),
)
