"""Objects of a cluster, read from its API server in the form that the node agent uses."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rehearsal.controlplane.api import KubernetesApi, Object, UnknownKindError
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.charts import Crd
from rehearsal.kubernetes.clusters import PACKAGE, KubeCluster, namespace_of, of_scope

# API versions of kinds that are requested by name; all others are in the core group.
_VERSIONS = {"Deployment": "apps/v1", "StorageClass": "storage.k8s.io/v1"}


@dataclass(frozen=True)
class RealCluster(KubeCluster):
    """Nodes, releases and the cloud come from the state, all other objects from the API server."""

    api: KubernetesApi = field(compare=False)
    services: tuple[Record, ...] | None = None
    """Services of a snapshot; None to read them."""

    def objects(self, kind: str, namespace: str | None = None) -> Iterator[Record]:
        """See `KubeCluster`."""
        if kind == "Service" and self.services is not None:
            yield from (one for one in self.services if namespace in (None, namespace_of(one.outputs)))
            return
        for body in self.api.list(_VERSIONS.get(kind, "v1"), kind, namespace or ""):
            yield self._record(body)

    def get(self, kind: str, namespace: str, name: str) -> Record | None:
        """See `KubeCluster`."""
        body = self.api.find(_VERSIONS.get(kind, "v1"), kind, name, namespace)
        return self._record(body) if body else None

    def exists(self, kind: str, namespace: str, name: str) -> bool:
        """See `KubeCluster`."""
        return self.get(kind, namespace, name) is not None

    def custom_objects(self, crds: tuple[Crd, ...]) -> list[Record]:
        """See `KubeCluster`."""
        found: list[Record] = []
        for crd in crds:
            try:
                bodies = self.api.list(f"{crd.group}/{crd.versions[-1]}", crd.kind)
            except UnknownKindError:
                continue
            found.extend(map(self._record, bodies))
        return found

    def _record(self, body: Object) -> Record:
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        return Record(
            key=0,
            package=PACKAGE,
            type=f"{PACKAGE}:{body['apiVersion']}:{body['kind']}",
            scope=self.scope,
            id=f"{namespace}/{name}" if namespace else name,
            urn="",
            name=name,
            inputs=body,
            outputs=body,
        )


def current(state: State, api: KubernetesApi, scope: str) -> RealCluster:
    """The cluster with a scope as it is now; the ambient one once that of a cloud is deleted."""
    return RealCluster(state, of_scope(state, scope) or ambient.RECORD, api)
