"""Image repositories.

Shapes: google/services/artifactregistry/resource_artifact_registry_repository.go of
terraform-provider-google.
"""

from policies.sources.live.gcp.assets import asset, assets, part, short, switch
from policies.sources.live.mapping import One, same

_REPOSITORY = "artifactregistry.googleapis.com/Repository"
QUERIES = (assets(_REPOSITORY),)

KINDS = (
    asset(
        "gcp:artifactregistry/repository:Repository",
        _REPOSITORY,
        {
            **same("description", "format", "kmsKeyName", "mode"),
            "dockerConfig": One("dockerConfig", {"immutableTags": switch("immutableTags")}),
            "location": part("locations"),
            "name": short,
            "repositoryId": short,
            "vulnerabilityScanningConfig": One(
                "vulnerabilityScanningConfig",
                same("enablementConfig", "enablementState"),
            ),
        },
    ),
)
