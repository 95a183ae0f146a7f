"""Volumes of GKE's CSI drivers: Managed Lustre, Filestore, and buckets by Cloud Storage FUSE.

Source: GKE documentation, "Access existing Managed Lustre instances", "Access Filestore instances", "Mount
Cloud Storage buckets as persistent volumes" and "as CSI ephemeral volumes" (handles and attributes).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.workloads.waiting import WaitingError

LUSTRE_DRIVER, FILESTORE_DRIVER = "lustre.csi.storage.gke.io", "filestore.csi.storage.gke.io"
FUSE_DRIVER = "gcsfuse.csi.storage.gke.io"
_LUSTRE, _FILESTORE = "gcp:lustre/instance:Instance", "gcp:filestore/instance:Instance"
_FUSE_ANNOTATION = "gke-gcsfuse/volumes"
Source = Mapping[str, Any]


def attached(cluster: KubeCluster, home: Path, volume: str, spec: Mapping[str, Any]) -> Path | None:
    """Local folder of a PersistentVolume of Lustre or Filestore; None for other drivers.

    Raises WaitingError for what its driver, or the kernel, would not find.
    """
    source: Source = spec.get("csi") or {}
    if source.get("driver") == LUSTRE_DRIVER:
        return _lustre(cluster, home, volume, source)
    if source.get("driver") == FILESTORE_DRIVER:
        return _filestore(cluster, home, volume, source)
    if spec.get("nfs"):
        return _nfs(cluster, home, volume, spec["nfs"])
    return None


def fuse_bucket(source: Source) -> str:
    """Bucket of a Cloud Storage FUSE volume; empty for other drivers."""
    if source.get("driver") != FUSE_DRIVER:
        return ""
    return str((source.get("volumeAttributes") or {}).get("bucketName") or source.get("volumeHandle") or "")


def refuse_fuse(volume: str, bucket: str, annotations: Mapping[str, Any], folder: Path | None) -> None:
    """Raise WaitingError for a bucket that the driver cannot mount; `folder` is the bucket's, if any."""
    if str(annotations.get(_FUSE_ANNOTATION)).lower() != "true":
        raise _unmountable(
            volume,
            "rpc error: code = FailedPrecondition desc = failed to find the sidecar container in Pod spec "
            f'(annotation {_FUSE_ANNOTATION}: "true")',
        )
    if folder is None:
        raise _unmountable(
            volume,
            "rpc error: code = NotFound desc = failed to get GCS bucket "
            f'"{bucket}": googleapi: Error 404: The specified bucket does not exist.',
        )
    if folder.is_file():
        raise _unmountable(
            volume,
            "rpc error: code = PermissionDenied desc = failed to get GCS bucket "
            f'"{bucket}": googleapi: Error 403: the pod does not have storage.objects.list access',
        )


def _lustre(cluster: KubeCluster, home: Path, volume: str, source: Source) -> Path:
    handle, attributes = str(source.get("volumeHandle")), source.get("volumeAttributes") or {}
    project, _, rest = handle.partition("/")
    location, _, name = rest.partition("/")
    record = _record(cluster, volume, _LUSTRE, f"projects/{project}/locations/{location}/instances/{name}")
    mounted = re.fullmatch(r"(.+)@tcp:/(.+)", str(record.outputs.get("mountPoint")))
    if mounted:
        _same(volume, attributes, {"ip": mounted[1], "filesystem": mounted[2]})
    return _folder(home / "lustre" / record.id)


def _filestore(cluster: KubeCluster, home: Path, volume: str, source: Source) -> Path:
    handle, attributes = str(source.get("volumeHandle")), source.get("volumeAttributes") or {}
    parts = handle.split("/")
    if len(parts) != 4:
        raise _unmountable(volume, f"volumeHandle {handle!r} is not modeInstance/LOCATION/INSTANCE/SHARE")
    project = str(cluster.record.outputs.get("project") or cluster.record.scope)
    record = _record(
        cluster, volume, _FILESTORE, f"projects/{project}/locations/{parts[1]}/instances/{parts[2]}"
    )
    _same(volume, attributes, {"ip": _address(record), "volume": str(at(record.inputs, "fileShares.name"))})
    return _folder(home / "filestore" / record.id / parts[3])


def _nfs(cluster: KubeCluster, home: Path, volume: str, source: Source) -> Path:
    server, path = str(source.get("server")), str(source.get("path"))
    for record in cluster.state.find(type=_FILESTORE):
        share = str(at(record.inputs, "fileShares.name"))
        if _address(record) == server and (path.strip("/") + "/").startswith(f"{share}/"):
            return _folder(home / "filestore" / record.id / path.strip("/"))
    raise _unmountable(volume, f"mount.nfs: mounting {server}:{path} failed, no such server or share")


def _address(record: Record) -> str:
    return str(at(record.outputs, "networks[0].ipAddresses[0]"))


def _record(cluster: KubeCluster, volume: str, token: str, id: str) -> Record:
    found = next((one for one in cluster.state.find(type=token) if one.id == id), None)
    if found is None:
        raise _unmountable(volume, f"rpc error: code = NotFound desc = {id} does not exist")
    return found


def _same(volume: str, attributes: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        if attributes.get(name) != value:
            raise _unmountable(volume, f"volumeAttributes.{name} is {attributes.get(name)!r}, not {value!r}")


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _unmountable(volume: str, reason: str) -> WaitingError:
    return WaitingError("FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {reason}')
