"""Instances and disks.

Shapes: google/services/compute/resource_compute_{instance,disk}.go of terraform-provider-google.
"""

from policies.sources.live.gcp.assets import asset, assets, end_of, number

_INSTANCE, _DISK = "compute.googleapis.com/Instance", "compute.googleapis.com/Disk"
QUERIES = (assets(_INSTANCE), assets(_DISK))

KINDS = (
    asset(
        "gcp:compute/instance:Instance",
        _INSTANCE,
        {
            "canIpForward": "canIpForward",
            "deletionProtection": "deletionProtection",
            "description": "description",
            "hostname": "hostname",
            "machineType": end_of("machineType"),
            "name": "name",
            "selfLink": "selfLink",
            "zone": end_of("zone"),
        },
    ),
    asset(
        "gcp:compute/disk:Disk",
        _DISK,
        {
            "description": "description",
            "name": "name",
            "selfLink": "selfLink",
            "size": number("sizeGb"),
            "snapshot": "sourceSnapshot",
            "type": end_of("type"),
            "zone": end_of("zone"),
        },
    ),
)
