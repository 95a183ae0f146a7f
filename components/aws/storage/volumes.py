"""File systems on AWS as sources of Kubernetes volumes."""

import pulumi

from components.aws.storage.lustre import AwsLustre
from components.kubernetes.volumes import VolumeSourceArgs

LUSTRE_DRIVER = "fsx.csi.aws.com"
EFS_DRIVER = "efs.csi.aws.com"


def lustre_source(system: AwsLustre) -> VolumeSourceArgs:
    """An FSx for Lustre file system, with its links to buckets."""
    return {
        "driver": LUSTRE_DRIVER,
        "handle": system.file_system_id,
        "attributes": {"dnsname": system.dns_name, "mountname": system.mount_name},
        # Cluster-wide file locks, which data loaders and caches of several nodes rely on.
        "mount_options": ["flock"],
    }


def efs_source(
    file_system_id: pulumi.Input[str], access_point_id: pulumi.Input[str] | None = None
) -> VolumeSourceArgs:
    """An EFS file system, over TLS; an access point fixes user and folder."""
    handle = file_system_id
    if access_point_id is not None:
        handle = pulumi.Output.concat(file_system_id, "::", access_point_id)
    return {"driver": EFS_DRIVER, "handle": handle, "mount_options": ["tls"]}
