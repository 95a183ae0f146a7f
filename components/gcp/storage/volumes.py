"""File systems on Google Cloud as sources of Kubernetes volumes."""

from typing import Final

import pulumi

from components.gcp.storage.homes import SHARE, GcpHomes
from components.gcp.storage.lustre import GcpLustre
from components.kubernetes.volumes import VolumeSourceArgs

LUSTRE_DRIVER = "lustre.csi.storage.gke.io"
FILESTORE_DRIVER = "filestore.csi.storage.gke.io"
FUSE_DRIVER = "gcsfuse.csi.storage.gke.io"
# Those of FUSE's profile `aiml-training` (GoogleCloudPlatform/gcsfuse v3.5.0 cfg/params.yaml), which the
# driver takes from a StorageClass alone (gcs-fuse-csi-driver pull request 982): folders need no object of
# their own, and names and sizes are kept for the life of a pod.
_FUSE_OPTIONS: Final = (
    "ro",
    "implicit-dirs",
    "metadata-cache:negative-ttl-secs:0",
    "metadata-cache:stat-cache-max-size-mb:-1",
    "metadata-cache:ttl-secs:-1",
    "metadata-cache:type-cache-max-size-mb:-1",
)


def lustre_source(system: GcpLustre, folder: str = "", *, read_only: bool = False) -> VolumeSourceArgs:
    """A Managed Lustre instance; `folder`: only that one, which must exist.

    The driver mounts `<ip>@tcp:/<filesystem>` as given (GoogleCloudPlatform/lustre-csi-driver v0.6.11
    pkg/csi_driver/node.go, `NodeStageVolume`), and a Lustre client shows only what is named there. So
    the name of the file system includes the folder. A later driver has an attribute `subPath` for it,
    which this one rejects, with handles of the same form (examples/pre-prov/preprov-subpath-pvc-pv.yaml).

    On a node with a folder mounted, the driver refuses to mount the whole file system until the folder is
    unmounted (`hasMountWithSameFSName`): pods that mount all of it do not share nodes with teams' pods.

    Only a mount option makes a volume read-only for every pod: the kubelet passes `readOnly` only as set by
    the pod (kubernetes v1.36.2 pkg/volume/csi/csi_util.go, `getReadOnlyFromSpec`). The driver mounts a
    volume once for a node, by its handle, so every folder has its own. *Untested on hardware.*
    """
    name, handle = system.file_system, system.instance.apply(lustre_handle)
    if folder:
        name, handle = pulumi.Output.concat(name, f"/{folder}"), part(handle, folder)
    return {
        "driver": LUSTRE_DRIVER,
        "handle": handle,
        "attributes": {"ip": system.address, "filesystem": name},
        # Cluster-wide file locks, which data loaders and caches of several nodes rely on.
        "mount_options": ["flock", *(["ro"] if read_only else [])],
    }


def filestore_source(homes: GcpHomes, folder: str = "") -> VolumeSourceArgs:
    """The share of a Filestore instance; `folder`: only that one, which must exist.

    The driver mounts `<ip>:/<volume>` (kubernetes-sigs/gcp-filestore-csi-driver@2edb466b
    pkg/csi_driver/node.go, `NodeStageVolume`), and reads nothing else from the handle of an instance without
    multishares. It mounts a volume once for a node, by its handle: with one handle for all, a team would get
    the folder that another one mounted before. *Untested in a real project.*
    """
    handle = pulumi.Output.concat(f"modeInstance/{homes.location}/", homes.instance, f"/{SHARE}")
    volume = SHARE
    if folder:
        handle, volume = part(handle, folder), f"{SHARE}/{folder}"
    return {
        "driver": FILESTORE_DRIVER,
        "handle": handle,
        "attributes": {"ip": homes.address, "volume": volume, "fileProtocol": "NFS_V4_1"},
        "mount_options": ["nfsvers=4.1"],
    }


def bucket_source(bucket: pulumi.Input[str]) -> VolumeSourceArgs:
    """A bucket, read only, by Cloud Storage FUSE.

    The account of the pod needs the right to list the whole bucket: the driver, its sidecar and FUSE each
    open it without a prefix (gcs-fuse-csi-driver v1.24.4 pkg/cloud_provider/storage/storage.go,
    `CheckBucketExists`). GKE adds the sidecar to pods with the annotation `gke-gcsfuse/volumes: "true"`.
    *Untested in a real project.*
    """
    return {"driver": FUSE_DRIVER, "handle": bucket, "mount_options": list(_FUSE_OPTIONS)}


def lustre_handle(instance: str) -> str:
    """`<project>/<zone>/<name>` of `projects/<project>/locations/<zone>/instances/<name>`."""
    return "/".join(instance.split("/")[1::2])


def part(handle: pulumi.Output[str], folder: str) -> pulumi.Output[str]:
    """The handle of a folder: as many slashes as that of the whole, which drivers count."""
    return pulumi.Output.concat(handle, f":{folder.replace('/', ':')}")
