"""Buckets of Cloud Storage.

Shapes: google/services/storage/resource_storage_bucket.go of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, number, switch
from policies.sources.live.mapping import Each, One, Shape, View, same

_BUCKET = "storage.googleapis.com/Bucket"
QUERIES = (assets(_BUCKET),)


def _state(view: View) -> Any:
    """State of the objects of a rule (flattenBucketLifecycleRuleCondition)."""
    live = view.at("isLive")
    return "ANY" if live is None else "LIVE" if live else "ARCHIVED"


_CONDITION: Shape = {
    "age": number("age"),
    **same("createdBefore", "customTimeBefore", "daysSinceCustomTime", "daysSinceNoncurrentTime"),
    **same("noncurrentTimeBefore", "numNewerVersions"),
    "matchesPrefixes": "matchesPrefix",
    "matchesStorageClasses": "matchesStorageClass",
    "matchesSuffixes": "matchesSuffix",
    "withState": _state,
}

KINDS = (
    asset(
        "gcp:storage/bucket:Bucket",
        _BUCKET,
        {
            "customPlacementConfig": One("customPlacementConfig", {"dataLocations": "dataLocations"}),
            "encryption": One("encryption", {"defaultKmsKeyName": "defaultKmsKeyName"}),
            "hierarchicalNamespace": One("hierarchicalNamespace", {"enabled": switch("enabled")}),
            "lifecycleRules": Each(
                "lifecycle.rule",
                {
                    "action": One("action", same("type", "storageClass")),
                    "condition": One("condition", _CONDITION),
                },
            ),
            **same("location", "name", "selfLink", "storageClass"),
            "logging": One("logging", same("logBucket", "logObjectPrefix")),
            "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
            "uniformBucketLevelAccess": switch("iamConfiguration.uniformBucketLevelAccess.enabled"),
            "versioning": One("versioning", {"enabled": switch("enabled")}),
        },
        program_only=("forceDestroy",),
    ),
)
