"""Buckets of Cloud Storage.

Shapes: google/services/storage/resource_storage_bucket.go of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, number, switch
from policies.sources.live.mapping import Each, One, Shape, View

_BUCKET = "storage.googleapis.com/Bucket"
QUERIES = (assets(_BUCKET),)


def _state(view: View) -> Any:
    """State of the objects of a rule (flattenBucketLifecycleRuleCondition)."""
    live = view.at("isLive")
    return "ANY" if live is None else "LIVE" if live else "ARCHIVED"


_CONDITION: Shape = {
    "age": number("age"),
    "createdBefore": "createdBefore",
    "customTimeBefore": "customTimeBefore",
    "daysSinceCustomTime": "daysSinceCustomTime",
    "daysSinceNoncurrentTime": "daysSinceNoncurrentTime",
    "matchesPrefixes": "matchesPrefix",
    "matchesStorageClasses": "matchesStorageClass",
    "matchesSuffixes": "matchesSuffix",
    "noncurrentTimeBefore": "noncurrentTimeBefore",
    "numNewerVersions": "numNewerVersions",
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
                    "action": One("action", {"type": "type", "storageClass": "storageClass"}),
                    "condition": One("condition", _CONDITION),
                },
            ),
            "location": "location",
            "logging": One("logging", {"logBucket": "logBucket", "logObjectPrefix": "logObjectPrefix"}),
            "name": "name",
            "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
            "selfLink": "selfLink",
            "storageClass": "storageClass",
            "uniformBucketLevelAccess": switch("iamConfiguration.uniformBucketLevelAccess.enabled"),
            "versioning": One("versioning", {"enabled": switch("enabled")}),
        },
        program_only=("forceDestroy",),
    ),
)
