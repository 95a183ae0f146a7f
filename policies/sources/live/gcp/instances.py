"""Instances and disks.

Shapes: google/services/compute/resource_compute_{instance,disk}.go of terraform-provider-google.
"""

from policies.sources.live.gcp.assets import asset, assets, end_of, number
from policies.sources.live.mapping import same

_INSTANCE, _DISK = "compute.googleapis.com/Instance", "compute.googleapis.com/Disk"
QUERIES = (assets(_INSTANCE), assets(_DISK))

KINDS = (
    asset(
        "gcp:compute/instance:Instance",
        _INSTANCE,
        {
            **same("canIpForward", "deletionProtection", "description", "hostname", "name", "selfLink"),
            "machineType": end_of("machineType"),
            "zone": end_of("zone"),
        },
    ),
    asset(
        "gcp:compute/disk:Disk",
        _DISK,
        {
            **same("description", "name", "selfLink"),
            "size": number("sizeGb"),
            "snapshot": "sourceSnapshot",
            "type": end_of("type"),
            "zone": end_of("zone"),
        },
    ),
)
