"""File systems: Filestore, Managed Lustre, Parallelstore.

Shapes: google/services/{filestore,lustre,parallelstore} of terraform-provider-google.
"""

from policies.sources.live.gcp.assets import OF_PROJECT, asset, assets, by_name, end_of, part, short, switch
from policies.sources.live.mapping import LiveKind, same
from policies.sources.live.queries import ApiQuery

_FILESTORE, _BACKUP = "file.googleapis.com/Instance", "file.googleapis.com/Backup"
_LUSTRE = "lustre.googleapis.com/Instance"
_PARALLELSTORE = "parallelstore.projects.locations.instances.list"
QUERIES = (
    *map(assets, (_FILESTORE, _BACKUP, _LUSTRE)),
    # Asset Inventory has no Parallelstore. A project without its API has no instance.
    ApiQuery(
        "parallelstore", "projects.locations.instances.list", "instances",
        given={"parent": f"{OF_PROJECT}/locations/-"}, right="parallelstore.instances.list",
        unset=("SERVICE_DISABLED",),
    ),
)  # fmt: skip


KINDS = (
    asset(
        "gcp:filestore/instance:Instance",
        _FILESTORE,
        {
            "deletionProtectionEnabled": switch("deletionProtectionEnabled"),
            **same("description", "kmsKeyName", "protocol", "tier"),
            "location": part("locations"),
            "name": short,
        },
    ),
    asset(
        "gcp:filestore/backup:Backup",
        _BACKUP,
        {
            **same("description", "sourceFileShare", "sourceInstance"),
            "location": part("locations"),
            "name": short,
        },
    ),
    asset(
        "gcp:lustre/instance:Instance",
        _LUSTRE,
        {
            **same("capacityGib", "description", "filesystem", "kmsKey", "network"),
            "instanceId": short,
            "location": part("locations"),
        },
        keys=("kmsKey",),
    ),
    LiveKind(
        "gcp:parallelstore/instance:Instance",
        _PARALLELSTORE,
        by_name,
        {
            **same("capacityGib", "deploymentType", "network"),
            "instanceId": end_of("name"),
            "location": lambda view: by_name(view).split("/")[3],
            "project": "account",
        },
        name=end_of("name"),
        tags="labels",
        regionless=True,
    ),
)
