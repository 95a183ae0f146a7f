"""Volumes of pods as local folders and files."""

import contextlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.dataplane import folders
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.gcp.identity import may_list
from rehearsal.kubernetes.gcp.volumes import attached, fuse_bucket, fuse_view, refuse_fuse
from rehearsal.workloads.translate import Object, Pod, contents, field_value
from rehearsal.workloads.waiting import WaitingError

FSX_DRIVER, EFS_DRIVER = "fsx.csi.aws.com", "efs.csi.aws.com"
_LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
_GCS = "gcp:storage/bucket:Bucket"
_EFS = "aws:efs/fileSystem:FileSystem"
_ASSOCIATION = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"


# Files of a pod's service account: `token`, and `ca.crt` of the API server.
Account = Callable[[KubeCluster, Pod], Mapping[str, bytes]]
_ROOT_AUTHORITY = "kube-root-ca.crt"


class Volumes:
    """Creates the volumes of pods of one cluster below `home`, the folder of the rehearsal."""

    def __init__(self, cluster: KubeCluster, home: Path, account: Account) -> None:
        self._cluster, self._home, self._account = cluster, home, account

    def mount(
        self, pod: Pod, container: Object, folder: Path, buckets: Mapping[str, Path] | None = None
    ) -> tuple[dict[str, Path], frozenset[str]]:
        """Container path -> local path for one container, and the container paths of its ConfigMaps' files.

        `buckets` are the folders of the pod's buckets, by URI. Raises WaitingError as the kubelet reports a
        volume that it cannot set up.
        """
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes") or ()}
        self._refuse_same_handle(pod, volumes)
        paths: dict[str, Path] = {}
        files: set[str] = set()
        claimed: set[str] = set()
        for mount in container.get("volumeMounts") or ():
            volume = volumes.get(mount["name"])
            if volume is None:
                raise WaitingError("Invalid", f'volumeMounts: Not found: "{mount["name"]}"')
            local, names = self._make(volume, pod, folder / "volumes" / mount["name"], buckets or {})
            target = str(mount["mountPath"]).rstrip("/")
            part = str(mount.get("subPath") or "")
            if part and not names:
                (local / part).mkdir(parents=True, exist_ok=True)
            paths[target] = local / part if part else local
            files.update([target] if part in names else [f"{target}/{name}" for name in names])
            if volume.get("persistentVolumeClaim"):
                claimed.add(target)
        _nest(paths, claimed)
        return paths, frozenset(files)

    def _make(
        self, volume: Object, pod: Pod, folder: Path, buckets: Mapping[str, Path]
    ) -> tuple[Path, frozenset[str]]:
        """Local folder of a volume, and its files from a ConfigMap."""
        if volume.get("persistentVolumeClaim"):
            claim = volume["persistentVolumeClaim"]["claimName"]
            return self._claimed(claim, pod, folder, buckets), frozenset()
        if fuse_bucket(source := volume.get("csi") or {}):
            given = str((source.get("volumeAttributes") or {}).get("mountOptions") or "").split(",")
            options = [*given, *(["ro"] if source.get("readOnly") else [])]
            return self._fuse(
                volume["name"], source, pod, buckets, options=options, folder=folder
            ), frozenset()
        folder.mkdir(parents=True, exist_ok=True)
        names: set[str] = set()
        sources = (volume.get("projected") or {}).get("sources") or [volume]
        for source in sources:
            for kind, key in (("ConfigMap", "configMap"), ("Secret", "secret")):
                if source.get(key):
                    found = self._files(kind, source[key], volume["name"], pod)
                    _write(folder, found)
                    names.update(found if kind == "ConfigMap" else ())
            if source.get("serviceAccountToken"):
                token = self._account(self._cluster, pod)["token"]
                _write(folder, {source["serviceAccountToken"]["path"]: token})
            if source.get("downwardAPI"):
                items = source["downwardAPI"].get("items") or ()
                texts = {
                    row["path"]: field_value(row["fieldRef"]["fieldPath"], pod).encode() for row in items
                }
                _write(folder, texts)
        return folder, frozenset(names)

    def _files(self, kind: str, source: Object, volume: str, pod: Pod) -> dict[str, bytes]:
        name = source.get("name") or source.get("secretName")
        record = self._cluster.get(kind, pod.namespace, str(name))
        if record is None and (kind, name) == ("ConfigMap", _ROOT_AUTHORITY):  # every namespace has it
            return {"ca.crt": self._account(self._cluster, pod)["ca.crt"]}
        if record is None:
            if source.get("optional"):
                return {}
            raise WaitingError(
                "FailedMount",
                f'MountVolume.SetUp failed for volume "{volume}" : {kind.lower()} "{name}" not found',
            )
        files = contents({**record.inputs, "kind": kind})
        items = source.get("items")
        if not items:
            return files
        missing = [row["key"] for row in items if row["key"] not in files]
        if missing:
            raise WaitingError(
                "FailedMount",
                f'MountVolume.SetUp failed for volume "{volume}" : {kind.lower()} references non-existent '
                f"config key: {missing[0]}",
            )
        return {row["path"]: files[row["key"]] for row in items}

    # -- persistent volumes ----------------------------------------------------------------------------

    def _refuse_same_handle(self, pod: Pod, volumes: Mapping[str, Object]) -> None:
        """Of volumes with one driver and handle, the kubelet mounts one and waits for the others.

        Source: kubernetes/kubernetes pkg/kubelet/volumemanager/cache/desired_state_of_world.go,
        AddPodToVolume, and pkg/volume/csi/csi_plugin.go, GetVolumeName (v1.36.2).
        """
        seen: dict[tuple[str, str], str] = {}
        for name, volume in volumes.items():
            claim = volume.get("persistentVolumeClaim")
            bound = self._bound(claim["claimName"], pod) if claim else None
            source = (bound.inputs["spec"].get("csi") if bound else None) or {}
            if bound and source and (other := seen.setdefault(_identity(source), bound.name)) != bound.name:
                raise WaitingError(
                    "FailedMount",
                    f"Unable to attach or mount volumes: unmounted volumes=[{name}]: timed out waiting for "
                    f"the condition; {bound.name} and {other} have the same volumeHandle",
                )

    def _claim(self, claim: str, pod: Pod) -> Record:
        record = self._cluster.get("PersistentVolumeClaim", pod.namespace, claim)
        if record is None:
            raise WaitingError("Unschedulable", f'persistentvolumeclaim "{claim}" not found')
        return record

    def _bound(self, claim: str, pod: Pod) -> Record | None:
        """The volume of a claim; None for one without a name, which gets a disk of its own."""
        name = self._claim(claim, pod).inputs["spec"].get("volumeName")
        if not name:
            return None
        volume = self._cluster.get("PersistentVolume", "", name)
        if volume is None:
            raise WaitingError("Unschedulable", "pod has unbound immediate PersistentVolumeClaims")
        return volume

    def _fuse(
        self,
        volume: str,
        source: Mapping[str, Any],
        pod: Pod,
        buckets: Mapping[str, Path],
        *,
        options: Sequence[str],
        folder: Path,
    ) -> Path:
        """Folder of a FUSE volume, below `folder` where it is not that of the bucket."""
        bucket = fuse_bucket(source)
        found = buckets.get(f"gs://{bucket}")
        refuse_fuse(volume, bucket, pod.annotations, found, listed=may_list(self._cluster, pod, bucket))
        assert found is not None
        made = [one for one in self._cluster.state.find(type=_GCS) if one.outputs.get("name") == bucket]
        real = any(at(one.inputs, "hierarchicalNamespace.enabled") for one in made)
        return fuse_view(found, options, folder, real_folders=real)

    def _claimed(self, claim: str, pod: Pod, folder: Path, buckets: Mapping[str, Path]) -> Path:
        volume = self._bound(claim, pod)
        spec = volume.inputs["spec"] if volume else {}
        source = spec.get("csi") or {}
        if volume is not None and fuse_bucket(source):
            options = spec.get("mountOptions") or ()
            return self._fuse(volume.name, source, pod, buckets, options=options, folder=folder)
        if volume is not None:
            return self._attached(volume)
        # Claims of the same name in another cluster, or an earlier one of this name, have other disks.
        uid = self._claim(claim, pod).outputs["metadata"]["uid"]
        local = self._home / "volumes" / pod.namespace / f"{claim}-{uid}"
        local.mkdir(parents=True, exist_ok=True)
        return local

    def _attached(self, volume: Record) -> Path:
        googles = attached(self._cluster, self._home, volume.name, volume.inputs["spec"])
        if googles is not None:
            return googles
        source = volume.inputs["spec"].get("csi") or {}
        handle, _, access_point = str(source.get("volumeHandle") or volume.name).partition("::")
        if source.get("driver") == FSX_DRIVER:
            return self._lustre(volume.name, handle, source.get("volumeAttributes") or {})
        if source.get("driver") == EFS_DRIVER:
            if not any(record.id == handle for record in self._cluster.state.find(type=_EFS)):
                raise _unmountable(volume.name, f"file system {handle} does not exist")
            local = self._home / "efs" / handle / access_point
        else:
            local = self._home / "volumes" / volume.name
        local.mkdir(parents=True, exist_ok=True)
        return local

    def _lustre(self, volume: str, handle: str, attributes: Mapping[str, Any]) -> Path:
        systems = [record for record in self._cluster.state.find(type=_LUSTRE) if record.id == handle]
        if not systems:
            raise _unmountable(volume, f"file system {handle} does not exist")
        outputs = systems[0].outputs
        # A folder may follow the name (kubernetes-sigs/aws-fsx-csi-driver@5b227125 pkg/driver/node.go).
        mounted, _, folder = str(attributes.get("mountname")).partition("/")
        given = {"dnsname": ("dnsName", attributes.get("dnsname")), "mountname": ("mountName", mounted)}
        for attribute, (name, value) in given.items():
            if outputs.get(name) and value != outputs[name]:
                raise _unmountable(
                    volume, f"volumeAttributes.{attribute} is {value!r}, not {outputs[name]!r}"
                )
        local = self._home / "fsx" / handle
        local.mkdir(parents=True, exist_ok=True)
        for record in self._cluster.state.find(type=_ASSOCIATION):
            if record.inputs.get("fileSystemId") == handle:
                _link(local, record.inputs, self._home)
        if not (local / folder).is_dir():
            raise _unmountable(volume, f"mount.lustre: /{folder}: No such file or directory")
        return local / folder


def _nest(paths: Mapping[str, Path], claimed: Collection[str]) -> None:
    """Link nested volumes into their parent volume, as for a folder below HOME.

    Not for claims: pods with other mounts share them.
    """
    for inner, local in paths.items():
        above = [outer for outer in paths if inner.startswith(f"{outer}/") and outer not in claimed]
        if above:
            outer = max(above, key=len)
            link = paths[outer] / inner.removeprefix(f"{outer}/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(local)


def _link(local: Path, association: Mapping[str, Any], home: Path) -> None:
    """Link the objects of a Lustre file system's S3 prefix into its folder."""
    found = re.fullmatch(r"s3://([^/]+)/?(.*)", str(association.get("dataRepositoryPath") or ""))
    path = str(association.get("fileSystemPath") or "").strip("/")
    if not found or not path:
        return
    target = folders.bucket(home, found[1]) / found[2].strip("/")
    target.mkdir(parents=True, exist_ok=True)
    link = local / path
    link.parent.mkdir(parents=True, exist_ok=True)
    # Pods that start together run this concurrently.
    with contextlib.suppress(FileExistsError):
        link.symlink_to(target)


def _identity(source: Mapping[str, Any]) -> tuple[str, str]:
    return str(source.get("driver")), str(source.get("volumeHandle"))


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        draft.write_bytes(content)
        draft.replace(path)


def _unmountable(volume: str, reason: str) -> WaitingError:
    return WaitingError("FailedMount", f'MountVolume.MountDevice failed for volume "{volume}" : {reason}')
