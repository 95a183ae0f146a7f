"""Helm releases of a real control plane.

Charts whose controller runs here (Kueue, JobSet, Trainer) are installed as Helm renders them. For other known
charts, the custom kinds (with any fields) and the Services are created; their pods do not run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rehearsal.controlplane.addons import ADDONS
from rehearsal.controlplane.api import ApiError, Object
from rehearsal.core.model import Call, Properties, Record, RefusalError
from rehearsal.kubernetes import helm
from rehearsal.kubernetes.charts import ChartFacts, Crd, all_crds, find
from rehearsal.kubernetes.kinds import HELM_RELEASE
from rehearsal.realcluster.cluster import RealCluster
from rehearsal.realcluster.plane import Plane


def create(call: Call, plane: Plane, cluster: RealCluster, inputs: Properties) -> tuple[str, Properties]:
    """Install a chart. Raises RefusalError, or InitFailedError as `helm.settle` does."""
    name, namespace = str(inputs["name"]), str(inputs.get("namespace") or "default")
    identifier = f"{namespace}/{name}"
    chart = helm.known(call, inputs)
    known = cluster.state.get("kubernetes", HELM_RELEASE, cluster.scope, identifier)
    if known and not _revisions(cluster, known):  # uninstalled outside of the program
        cluster.state.remove(known)
    elif known:
        raise RefusalError(
            "AlreadyExists", f"cannot re-use a name that is still in use: release {identifier}"
        )
    _require_namespace(cluster, namespace, make=bool(inputs.get("createNamespace")))
    outputs = helm.outputs_of(inputs, chart, revision=1)
    _install(plane, cluster, chart, inputs, namespace)
    record = helm.insert(call, cluster, identifier, inputs, outputs)
    with _recorded(cluster, record):
        return identifier, helm.settle(
            call, cluster, record, None, lambda: _uninstall(plane, cluster, record)
        )


def update(call: Call, plane: Plane, cluster: RealCluster, before: Record, inputs: Properties) -> Properties:
    """Upgrade a release. Raises RefusalError, or InitFailedError as `helm.settle` does."""
    chart = helm.known(call, inputs)
    outputs = helm.outputs_of(inputs, chart, revision=int(before.outputs["status"]["revision"]) + 1)
    record = helm.begin(cluster, before, inputs, outputs)

    def install(release: Record) -> None:
        namespace = str(release.outputs["namespace"])
        _install(plane, cluster, find(str(release.inputs.get("chart"))), release.inputs, namespace)

    with _recorded(cluster, record):
        install(record)
        return helm.settle(call, cluster, record, before, lambda: install(before))


def read(cluster: RealCluster, record: Record) -> tuple[Properties, Properties] | None:
    """Inputs and outputs of a release; None where Helm has no record of it."""
    return (record.inputs, record.outputs) if _revisions(cluster, record) else None


def delete(plane: Plane, cluster: RealCluster, record: Record) -> None:
    """Uninstall a release. Raises RefusalError while objects of its custom kinds exist."""
    helm.refuse_left(cluster, record, find(str(record.inputs.get("chart") or "")))
    with _recorded(cluster, record):
        _uninstall(plane, cluster, record)
        cluster.state.remove(record)


@contextmanager
def _recorded(cluster: RealCluster, record: Record) -> Iterator[None]:
    """Write what Helm would record of a release, as it is after the block (pkg/storage/driver/secrets.go)."""
    try:
        yield
    finally:
        after = cluster.state.get("kubernetes", HELM_RELEASE, cluster.scope, record.id)
        namespace = str(record.outputs["namespace"])
        for body in _revisions(cluster, record):
            name, labels = body["metadata"]["name"], {"status": "superseded"}
            if after is None:
                cluster.api.delete("v1", "Secret", name, namespace)
            elif body["metadata"]["labels"]["status"] == "deployed":
                cluster.api.patch("v1", "Secret", name, {"metadata": {"labels": labels}}, namespace)
        if after is not None:
            status = after.outputs["status"]
            revision = str(status["revision"])
            labels = {"owner": "helm", "name": record.name, "status": status["status"], "version": revision}
            about = {"name": f"sh.helm.release.v1.{record.name}.v{revision}", "namespace": namespace}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": {**about, "labels": labels}}
            cluster.api.apply({**body, "type": "helm.sh/release.v1"}, manager="helm")


def _revisions(cluster: RealCluster, record: Record) -> list[Object]:
    labels = f"owner=helm,name={record.name}"
    return cluster.api.list("v1", "Secret", str(record.outputs["namespace"]), labels=labels)


def _uninstall(plane: Plane, cluster: RealCluster, record: Record) -> None:
    chart = find(str(record.inputs.get("chart") or ""))
    if chart and chart.name in ADDONS:
        plane.remove(chart.name)
    elif chart:
        for body in _objects(chart, record.inputs, str(record.outputs["namespace"])):
            metadata = body["metadata"]
            if body["kind"] != _CRD or chart.crds_in == "templates":
                cluster.api.delete(
                    body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", "")
                )


_CRD = "CustomResourceDefinition"


def _install(
    plane: Plane, cluster: RealCluster, chart: ChartFacts | None, inputs: Properties, namespace: str
) -> None:
    if chart and chart.name in ADDONS:
        skip = bool(inputs.get("skipCrds"))
        plane.install(chart.name, inputs.get("values") or {}, skip_crds=skip)
        return
    for body in _objects(chart, inputs, namespace) if chart else ():
        try:
            cluster.api.apply(body, manager="helm")
        except ApiError as error:
            raise RefusalError("InstallFailed", str(error)) from error


def _objects(chart: ChartFacts, inputs: Properties, namespace: str) -> Iterator[Object]:
    if not inputs.get("skipCrds"):
        yield from map(_definition, all_crds(chart))
    yield from helm.services(chart, inputs, namespace)


def _definition(crd: Crd) -> Object:
    """CustomResourceDefinition of a kind of which only the name is known."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    annotations = {}
    if crd.group.endswith(".k8s.io"):  # kinds of this reserved group need the annotation
        annotations["api-approved.kubernetes.io"] = "unapproved, of a chart"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": _CRD,
        "metadata": {"name": crd.name, "annotations": annotations},
        "spec": {
            "group": crd.group,
            "names": {"kind": crd.kind, "plural": crd.plural, "singular": crd.kind.lower()},
            "scope": "Namespaced" if crd.namespaced else "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": index == len(crd.versions) - 1,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for index, version in enumerate(crd.versions)
            ],
        },
    }


def _require_namespace(cluster: RealCluster, namespace: str, *, make: bool) -> None:
    if cluster.exists("Namespace", "", namespace):
        return
    if not make:
        raise helm.no_namespace(namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    cluster.api.create(body, manager="helm")
