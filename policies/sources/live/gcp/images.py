"""Image repositories.

Shapes: google/services/artifactregistry/resource_artifact_registry_repository.go of
terraform-provider-google.
"""

from policies.sources.live.gcp.assets import asset, assets, part, short, switch
from policies.sources.live.mapping import One

_REPOSITORY = "artifactregistry.googleapis.com/Repository"
QUERIES = (assets(_REPOSITORY),)

KINDS = (
    asset(
        "gcp:artifactregistry/repository:Repository",
        _REPOSITORY,
        {
            "description": "description",
            "dockerConfig": One("dockerConfig", {"immutableTags": switch("immutableTags")}),
            "format": "format",
            "kmsKeyName": "kmsKeyName",
            "location": part("locations"),
            "mode": "mode",
            "name": short,
            "repositoryId": short,
            "vulnerabilityScanningConfig": One(
                "vulnerabilityScanningConfig",
                {"enablementConfig": "enablementConfig", "enablementState": "enablementState"},
            ),
        },
    ),
)
