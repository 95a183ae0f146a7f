"""Volumes of GKE's CSI drivers: Managed Lustre, Filestore, and buckets by Cloud Storage FUSE.

Source: GKE documentation, "Access existing Managed Lustre instances", "Access Filestore instances", "Mount
Cloud Storage buckets as persistent volumes" and "as CSI ephemeral volumes" (handles and attributes).
"""

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.workloads.waiting import WaitingError

LUSTRE_DRIVER, FILESTORE_DRIVER = "lustre.csi.storage.gke.io", "filestore.csi.storage.gke.io"
FUSE_DRIVER = "gcsfuse.csi.storage.gke.io"
_CONNECTION, _ADDRESS = (
    "gcp:servicenetworking/connection:Connection",
    "gcp:compute/globalAddress:GlobalAddress",
)
_FIREWALL, _LUSTRE_PORT = "gcp:compute/firewall:Firewall", "988"
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


def fuse_view(folder: Path, options: Collection[str], view: Path, *, real_folders: bool) -> Path:
    """The part of a bucket that a pod sees: its folder, or in a folder `view` the files above all folders.

    Without `implicit-dirs` FUSE shows a folder only where an object or a hierarchical namespace
    (`real_folders`) makes it one (GoogleCloudPlatform/gcsfuse v3.5.0 docs/semantics.md). The driver removes a
    profile from the options of volumes (gcs-fuse-csi-driver pull request 982). Volumes that are written have
    the bucket itself: a view would not take their files.
    """
    if real_folders or "ro" not in options or {"implicit-dirs", "implicit-dirs=true"} & {*options}:
        return folder
    view.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        link = view / path.name
        if path.is_file() and not link.is_symlink():
            link.symlink_to(path)
    return view


def refuse_fuse(
    volume: str, bucket: str, annotations: Mapping[str, Any], folder: Path | None, *, listed: bool
) -> None:
    """Raise WaitingError for a bucket that the driver cannot mount.

    `folder` is the bucket's, if any; `listed`: whether the pod may list the whole bucket.
    """
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
    if folder.is_file() or not listed:
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
    if not _servers_let_in(cluster, record):
        raise _unmountable(
            volume,
            f"mount.lustre: mount {record.outputs.get('mountPoint')} failed: Input/output error. Is the MGS "
            f"running? (no firewall rule lets the servers in by tcp:{_LUSTRE_PORT})",
        )
    return _folder(home / "lustre" / record.id)


def _servers_let_in(cluster: KubeCluster, instance: Record) -> bool:
    """Return whether a rule admits the servers of an instance, which connect to their clients as well.

    Source: Managed Lustre documentation, "Configure a VPC network" (ingress from the peered range, tcp:988);
    GoogleCloudPlatform/lustre-csi-driver issue 104 (words).
    """
    network = _last(instance.inputs.get("network"))
    peered = {
        _last(name)
        for one in cluster.state.find(type=_CONNECTION)
        if _last(one.inputs.get("network")) == network
        for name in one.inputs.get("reservedPeeringRanges") or ()
    }
    servers = [
        ipaddress.ip_network(f"{one.outputs.get('address')}/{int(one.outputs['prefixLength'])}")
        for one in cluster.state.find(type=_ADDRESS)
        if one.outputs.get("name") in peered and one.outputs.get("prefixLength")
    ]
    admitted = [ipaddress.ip_network(cidr) for cidr in _admitted(cluster, network)]
    return all(
        any(own.overlaps(cidr) and own.prefixlen >= cidr.prefixlen for cidr in admitted) for own in servers
    )


def _admitted(cluster: KubeCluster, network: str) -> Iterator[str]:
    """Ranges whose addresses may connect to the port of Lustre in a network."""
    for rule in cluster.state.find(type=_FIREWALL):
        ours = _last(rule.inputs.get("network")) == network and not rule.inputs.get("disabled")
        if not ours or (rule.inputs.get("direction") or "INGRESS") != "INGRESS":
            continue
        for allowed in rule.inputs.get("allows") or ():
            ports = allowed.get("ports") or [_LUSTRE_PORT]
            if str(allowed.get("protocol")).lower() in ("tcp", "all", "6") and any(map(_has_port, ports)):
                yield from rule.inputs.get("sourceRanges") or ()


def _has_port(ports: object) -> bool:
    first, _, last = str(ports).partition("-")
    return int(first) <= int(_LUSTRE_PORT) <= int(last or first)


def _last(link: object) -> str:
    return str(link).rpartition("/")[2]


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
