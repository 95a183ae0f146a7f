"""Keys and secrets. Of a secret Asset Inventory knows that it exists, never its value.

Shapes: google/services/{kms,secretmanager} of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.form import One, View
from policies.sources.live.gcp.assets import asset, assets, named, part, short

_RING, _KEY = "cloudkms.googleapis.com/KeyRing", "cloudkms.googleapis.com/CryptoKey"
_SECRET = "secretmanager.googleapis.com/Secret"  # noqa: S105 - a type
QUESTIONS = tuple(map(assets, (_RING, _KEY, _SECRET)))


def _usable(view: View) -> bool:
    """Nobody can delete a key of KMS: one that is to be gone has a version that is destroyed."""
    return view.at("primary.state") not in ("DESTROYED", "DESTROY_SCHEDULED")


def _ring(view: View) -> str:
    return named(view).rpartition("/cryptoKeys/")[0]


def _replicas(view: View) -> Any:
    """Which regions; `auto` is the provider's word for automatic."""
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
            "destroyScheduledDuration": "destroyScheduledDuration",
            "importOnly": "importOnly",
            "keyRing": _ring,
            "name": short,
            "purpose": "purpose",
            "rotationPeriod": "rotationPeriod",
            "versionTemplate": One(
                "versionTemplate", {"algorithm": "algorithm", "protectionLevel": "protectionLevel"}
            ),
        },
        when=_usable,
        owned=False,
    ),
    asset(
        "gcp:secretmanager/secret:Secret",
        _SECRET,
        {"replication": _replicas, "secretId": short},
        # One of a single region is another type (gcp:secretmanager/regionalSecret).
        when=lambda view: "/locations/" not in named(view),
    ),
)
