"""CustomResourceDefinitions that pods read and write; an emulated cluster keeps names and versions alone."""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import RefusalError
from rehearsal.kubernetes.clusters import KubeCluster

RESOURCE = "customresourcedefinitions"
Object = Mapping[str, Any]


def get(cluster: KubeCluster, name: str) -> Object | None:
    """A definition by its name, established."""
    crd = next((crd for crd in cluster.crds() if crd.name == name), None)
    if crd is None:
        return None
    stored = crd.versions[-1]
    versions = [{"name": each, "served": True, "storage": each == stored} for each in crd.versions]
    conditions = [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {
            "group": crd.group,
            "names": {"kind": crd.kind, "plural": crd.plural},
            "scope": "Namespaced" if crd.namespaced else "Cluster",
            "versions": versions,
        },
        "status": {"conditions": conditions, "storedVersions": [stored]},
    }


def write(cluster: KubeCluster, new: Object) -> Object:
    """Create or replace a definition. Raises RefusalError as the API server does."""
    name, spec = str(new["metadata"]["name"]), new["spec"]
    if name != f"{spec['names']['plural']}.{spec['group']}":
        raise RefusalError("Invalid", f'metadata.name: Invalid value: "{name}": must be names.plural.group')
    if sum(bool(row.get("storage")) for row in spec["versions"]) != 1:
        raise RefusalError("Invalid", "spec.versions: must have exactly one version marked as storage")
    current = get(cluster, name)
    stored = current["status"]["storedVersions"] if current else ()
    for version in stored:
        if version not in [row["name"] for row in spec["versions"]]:
            raise RefusalError(
                "Invalid",
                f'status.storedVersions[0]: Invalid value: "{version}": missing from spec.versions',
            )
    cluster.define(spec)
    found = get(cluster, name)
    assert found
    return found
