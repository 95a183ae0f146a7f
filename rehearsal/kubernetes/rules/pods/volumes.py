"""The volumes of pods, and where containers mount them."""

from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import (
    Object,
    PodView,
    absent,
    at,
    mapping,
    pod,
    rows,
    text,
    unsure,
    whole,
)
from rehearsal.kubernetes.rules.book import BOOK, CORE, PODS
from rehearsal.kubernetes.rules.violations import duplicate, forbidden, invalid, not_found, required

# In the API server's order.
_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI",
    "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_NAMED = {"configMap": "name", "persistentVolumeClaim": "claimName", "secret": "secretName"}
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 2**32


@BOOK.rule("K8S-POD-003", *PODS, source=CORE)
def _volume_names(inputs: Properties) -> Iterator[Violation]:
    """Volumes have different names that are DNS labels."""
    view = pod(inputs)
    seen: set[str] = set()
    for index, volume in rows(view.spec.get("volumes")) if view else ():
        own, path = text(volume.get("name")), f"{view.path}.volumes[{index}].name" if view else ""
        if own is None:
            continue
        if wrong := grammar.label(own):
            yield invalid(path, own, wrong)
        if own in seen:
            yield duplicate(path, own)
        seen.add(own)


@BOOK.rule("K8S-POD-004", *PODS, source=CORE)
def _one_source(inputs: Properties) -> Iterator[Violation]:
    """A volume has one source; none means an empty directory."""
    view = pod(inputs)
    if view is None:
        return
    for index, volume in rows(view.spec.get("volumes")):
        sources = [source for source in _SOURCES if volume.get(source) is not None]
        for extra in sources[1:]:
            path = f"{view.path}.volumes[{index}].{extra}"
            yield forbidden(path, "may not specify more than 1 volume type")


@BOOK.rule("K8S-POD-005", *PODS, source=CORE)
def _mounted_volumes(inputs: Properties) -> Iterator[Violation]:
    """A mount names a volume of the pod, or a claim template of its StatefulSet."""
    view = pod(inputs)
    volumes = view.spec.get("volumes") if view else None
    templates = at(inputs, "spec.volumeClaimTemplates") if inputs.get("kind") == "StatefulSet" else None
    if view is None or _names_unknown(volumes) or unsure(templates):
        return
    known = {text(volume.get("name")) for _, volume in rows(volumes)}
    known |= {text(at(template, "metadata.name")) for _, template in rows(templates)}
    for path, container in view.containers():
        for index, mount in rows(container.get("volumeMounts")):
            own = text(mount.get("name"))
            if own is not None and own not in known:
                yield not_found(f"{path}.volumeMounts[{index}].name", own)


@BOOK.rule("K8S-POD-006", *PODS, source=CORE)
def _mount_paths(inputs: Properties) -> Iterator[Violation]:
    """The mounts of a container are at different paths."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        seen: set[str] = set()
        for index, mount in rows(container.get("volumeMounts")):
            where = text(mount.get("mountPath"))
            if absent(mount.get("mountPath")):
                yield required(f"{path}.volumeMounts[{index}].mountPath")
            elif where is not None and where in seen:
                yield invalid(f"{path}.volumeMounts[{index}].mountPath", where, "must be unique")
            seen.add(where or "")


def _volumes(view: PodView | None) -> Iterator[tuple[str, Object]]:
    """Every volume of a pod, with its path."""
    for index, volume in rows(view.spec.get("volumes")) if view else ():
        yield f"{view.path}.volumes[{index}]" if view else "", volume


def _projections(volume: Object) -> Iterator[tuple[str, str, Object]]:
    """Sources of a projected volume: path, kind, source."""
    for place, row in rows(at(volume, "projected.sources")):
        for kind in ("configMap", "downwardAPI", "secret", "serviceAccountToken"):
            if isinstance(source := row.get(kind), dict):
                yield f"projected.sources[{place}].{kind}", kind, source


def _of_keys(volume: Object) -> Iterator[tuple[str, Object]]:
    """Volume files from keys of an object: path, source."""
    for kind in ("configMap", "secret"):
        if isinstance(source := volume.get(kind), dict):
            yield kind, source
    yield from ((place, source) for place, kind, source in _projections(volume)
                if kind in ("configMap", "secret"))  # fmt: skip


@BOOK.rule("K8S-POD-016", *PODS, source=CORE)
def _projected(inputs: Properties) -> Iterator[Violation]:
    """Projected tokens are valid for ten minutes or more, and every file is projected once."""
    for path, volume in _volumes(pod(inputs)):
        seen: set[str] = set()
        for place, kind, source in _projections(volume):
            seconds = whole(source.get("expirationSeconds")) if kind == "serviceAccountToken" else None
            if seconds is not None and not _SHORTEST_TOKEN_S <= seconds <= _LONGEST_TOKEN_S:
                wrong = "less than 10 minutes" if seconds < _SHORTEST_TOKEN_S else "larger than 2^32 seconds"
                detail = f"may not specify a duration {wrong}"
                yield invalid(f"{path}.{place}.expirationSeconds", seconds, detail)
            for _, item in rows(source.get("items")):
                own = text(item.get("path"))
                if own and own in seen:
                    yield invalid(f"{path}.projected", own, "conflicting duplicate paths")
                seen.add(own or "")


@BOOK.rule("K8S-POD-017", *PODS, source=CORE)
def _named_sources(inputs: Properties) -> Iterator[Violation]:
    """A volume names the ConfigMap, Secret or claim that it is made from, and the keys of its files."""
    for path, volume in _volumes(pod(inputs)):
        found = [(f"{kind}.{key}", volume.get(kind), key) for kind, key in _NAMED.items()]
        found += [(f"{place}.items[{index}].{key}", item, key)
                  for place, source in _of_keys(volume) for index, item in rows(source.get("items"))
                  for key in ("key", "path")]  # fmt: skip
        found += [(f"{place}.name", source, "name")
                  for place, kind, source in _projections(volume) if kind in _NAMED]  # fmt: skip
        for place, source, key in found:
            if isinstance(source, dict) and absent(source.get(key)):
                yield required(f"{path}.{place}")


def _names_unknown(volumes: Any) -> bool:
    if not isinstance(volumes, list):
        return volumes is UNKNOWN
    return any(volume is UNKNOWN or mapping(volume).get("name") is UNKNOWN for volume in volumes)
