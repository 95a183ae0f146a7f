"""File systems on AWS as sources of Kubernetes volumes."""

import pulumi

from components.aws.storage.lustre import AwsLustre
from components.kubernetes.volumes import VolumeSourceArgs

LUSTRE_DRIVER = "fsx.csi.aws.com"
EFS_DRIVER = "efs.csi.aws.com"


def lustre_source(system: AwsLustre, folder: str = "", *, read_only: bool = False) -> VolumeSourceArgs:
    """An FSx for Lustre file system, with its links to buckets; `folder`: only that one, which must exist.

    The driver mounts `<address>@tcp:/<mountname>` (kubernetes-sigs/aws-fsx-csi-driver@5b227125
    pkg/driver/node.go, `NodePublishVolume`), and a Lustre client shows only what is named there.

    Only a mount option makes a volume read-only for every pod: the driver rejects the access mode
    ReadOnlyMany (pkg/driver/controller.go, `volumeCaps`), and the kubelet passes `readOnly` only as set by
    the pod (kubernetes v1.36.2 pkg/volume/csi/csi_util.go, `getReadOnlyFromSpec`).

    Every folder is a volume of its own by its handle, which the driver does not read: of volumes with one
    handle, the kubelet mounts one a pod, and waits for the others (kubernetes/kubernetes#91556).
    """
    mount, handle = system.mount_name, system.file_system_id
    if folder:
        mount = pulumi.Output.concat(mount, f"/{folder}")
        handle = pulumi.Output.concat(handle, f"::{folder}")
    return {
        "driver": LUSTRE_DRIVER,
        "handle": handle,
        "attributes": {"dnsname": system.dns_name, "mountname": mount},
        # Cluster-wide file locks, which data loaders and caches of several nodes rely on.
        "mount_options": ["flock", *(["ro"] if read_only else [])],
    }


def efs_source(file_system_id: pulumi.Input[str], access_point_id: pulumi.Input[str]) -> VolumeSourceArgs:
    """A folder of an EFS file system, over TLS: the access point fixes folder and user.

    The driver on the node authenticates its role to EFS (`iam`), as the file system's policy requires. Both
    majors read this handle and these options (kubernetes-sigs/aws-efs-csi-driver v2.3.1 and v3.4.1
    pkg/driver/node.go, `parseVolumeId`, `NodePublishVolume`). The attribute `path` ended with v3.0.0.
    """
    handle = pulumi.Output.concat(file_system_id, "::", access_point_id)
    return {"driver": EFS_DRIVER, "handle": handle, "mount_options": ["tls", "iam"]}


def whole_efs_source(file_system_id: pulumi.Input[str]) -> VolumeSourceArgs:
    """A whole EFS file system, over TLS, for pods whose users are the members."""
    return {"driver": EFS_DRIVER, "handle": file_system_id, "mount_options": ["tls", "iam"]}
