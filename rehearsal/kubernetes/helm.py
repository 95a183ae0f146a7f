"""Helm releases: `kubernetes:helm.sh/v3:Release`.

Sources: pulumi/pulumi-kubernetes provider/pkg/provider/helm_release.go; helm/helm v3.20.2 pkg/action,
install.go and upgrade.go (availableName, prepareUpgrade, failRelease).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core import properties
from rehearsal.core.model import (
    UNKNOWN,
    Call,
    CheckFailure,
    Diff,
    InitFailedError,
    Properties,
    Record,
    RefusalError,
)
from rehearsal.core.properties import at
from rehearsal.core.state import State
from rehearsal.kubernetes.api import awaits, objects
from rehearsal.kubernetes.api.naming import unique_suffix
from rehearsal.kubernetes.charts import ChartFacts, all_crds, find
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.nodes import nodes
from rehearsal.kubernetes.kinds import HELM_RELEASE, parse
from rehearsal.workloads.scheduling import place

# Namespaces created by Helm (`createNamespace`): not resources of a program, and never deleted by Helm.
NAMESPACE_SPACE = "kubernetes-namespace"
_TIMEOUT_S = 300.0
_OUTPUTS = ("status", "resourceNames")
_SERVICE = "kubernetes:core/v1:Service"
_INSTANCE = "app.kubernetes.io/instance"


def check(call: Call, old: Properties | None, new: Properties) -> tuple[Properties, list[CheckFailure]]:
    """Inputs of a release, with a generated name where none is given."""
    inputs = dict(new)
    if not inputs.get("name") and inputs.get("name") is not UNKNOWN:
        kept = (old or {}).get("name")
        inputs["name"] = kept or f"{call.name}-{unique_suffix(call.random_seed, 8)}"
    failures = []
    name, chart = inputs["name"], inputs.get("chart")
    if isinstance(name, str) and len(name) > 53:
        failures.append(CheckFailure("name", f"release name {name!r} exceeds the maximum length of 53"))
    if isinstance(chart, str) and not _locatable(chart, inputs.get("repositoryOpts")):
        failures.append(
            CheckFailure(
                "chart", f"chart {chart!r} not found: give repositoryOpts.repo, or an oci:// reference"
            )
        )
    return inputs, failures


def diff(old_inputs: Properties, new: Properties) -> Diff:
    """Differences of an update; a new name or namespace replaces the release."""
    kept = {name: value for name, value in old_inputs.items() if name not in _OUTPUTS}
    changed = tuple(properties.changed(kept, new))
    return Diff(changed, tuple(path for path in changed if path in ("name", "namespace")))


def create(call: Call, cluster: KubeCluster, inputs: Properties) -> tuple[str, Properties]:
    """Install a chart. Raises RefusalError, or InitFailedError as `settle` does."""
    name, namespace = str(inputs["name"]), str(inputs.get("namespace") or "default")
    identifier = f"{namespace}/{name}"
    chart = known(call, inputs)
    if cluster.state.get("kubernetes", HELM_RELEASE, cluster.scope, identifier):
        raise RefusalError(
            "AlreadyExists", f"cannot re-use a name that is still in use: release {identifier}"
        )
    _require_namespace(cluster, namespace, bool(inputs.get("createNamespace")))
    if chart and chart.crds_in == "templates":
        taken = {crd.name for crd in cluster.crds()}
        for crd in chart.crds:
            if crd.name in taken:
                raise RefusalError(
                    "Conflict",
                    f'Unable to continue with install: CustomResourceDefinition "{crd.name}" exists and '
                    "cannot be imported into the current release: invalid ownership metadata",
                )
    record = insert(call, cluster, identifier, inputs, outputs_of(inputs, chart, revision=1))
    _make_services(cluster, chart, inputs, namespace)
    return identifier, settle(call, cluster, record, None, lambda: _remove_services(cluster, record))


def insert(
    call: Call, cluster: KubeCluster, identifier: str, inputs: Properties, outputs: Properties
) -> Record:
    """Record the start of an install."""
    record = cluster.state.insert(
        package="kubernetes", type=HELM_RELEASE, scope=cluster.scope, id=identifier, urn=call.urn,
        name=str(inputs["name"]), inputs=inputs, outputs=outputs,
    )  # fmt: skip
    return _note(cluster, record, "pending-install")


def update(call: Call, cluster: KubeCluster, before: Record, inputs: Properties) -> Properties:
    """Upgrade a release. Raises RefusalError, or InitFailedError as `settle` does."""
    chart = known(call, inputs)
    outputs = outputs_of(inputs, chart, revision=int(before.outputs["status"]["revision"]) + 1)
    record = begin(cluster, before, inputs, outputs)

    def switch(old: Record, new: Record) -> None:
        _remove_services(cluster, old)
        found = find(str(new.inputs.get("chart")))
        _make_services(cluster, found, new.inputs, new.outputs["namespace"])

    switch(before, record)
    return settle(call, cluster, record, before, lambda: switch(record, before))


def delete(cluster: KubeCluster, record: Record) -> None:
    """Uninstall a release.

    CRDs of a chart's `crds` folder stay, as with Helm. CRDs of its templates are deleted, with every object
    of theirs; those objects have finalizers that only the removed controller could clear, so the real
    uninstall hangs until its timeout. Here it is refused, with the objects to delete first.
    """
    chart = find(str(record.inputs.get("chart") or ""))
    refuse_left(cluster, record, chart)
    if chart and chart.crds and chart.crds_in != "templates" and not record.inputs.get("skipCrds"):
        cluster.keep_crds(chart)
    _remove_services(cluster, record)
    cluster.state.remove(record)


def refuse_left(cluster: KubeCluster, record: Record, chart: ChartFacts | None) -> None:
    """Raise RefusalError while objects exist whose kinds an uninstall would remove."""
    if chart and chart.crds_in == "templates":
        left = cluster.custom_objects(chart.crds)
        if left:
            names = ", ".join(f"{item.type.rpartition(':')[2]} {item.id}" for item in left[:5])
            raise RefusalError(
                "TimedOut",
                f"uninstall of release {record.id} would remove the CRDs of {len(left)} object(s) that still "
                f"exist ({names}) together with the controller that clears their finalizers, and time out.",
                "Make those objects depend on the release, so that they are deleted before it.",
            )


def preview(inputs: Properties) -> Properties:
    """Outputs of a release in a preview."""
    return {**inputs, **dict.fromkeys(_OUTPUTS, UNKNOWN)}


def namespace_exists(state: State, cluster: KubeCluster, name: str) -> bool:
    """Return whether Helm created this namespace."""
    return state.document(NAMESPACE_SPACE, f"{cluster.identity}|{name}") is not None


def known(call: Call, inputs: Properties) -> ChartFacts | None:
    """The chart of a release; warns about an unknown one."""
    reference = str(inputs.get("chart"))
    chart = find(reference)
    if chart is None:
        call.log(
            "warning",
            f"the rehearsal does not know chart {reference}: it is accepted, but custom kinds and objects "
            "that it may bring are not there. Add it to rehearsal/kubernetes/charts.toml.",
        )
    return chart


def _make_services(
    cluster: KubeCluster, chart: ChartFacts | None, inputs: Properties, namespace: str
) -> None:
    for given in services(chart, inputs, namespace):
        name = given["metadata"]["name"]
        cluster.state.insert(
            package="kubernetes", type=_SERVICE, scope=cluster.scope, id=f"{namespace}/{name}", urn="",
            name=name, inputs=given,
            outputs=objects.born(parse(_SERVICE), given, namespace, on_aws=cluster.on_aws),
        )  # fmt: skip


def services(chart: ChartFacts | None, inputs: Properties, namespace: str) -> Iterator[Properties]:
    """Services of a chart; they have no pods, because a chart's own pods do not run."""
    values = inputs.get("values") or {}
    for service in chart.services if chart else ():
        name = _fullname(str(inputs["name"]), chart, values) + service.suffix
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "labels": {_INSTANCE: str(inputs["name"])}},
            "spec": {
                "type": at(values, service.type_from) or service.type,
                "ports": [dict(port) for port in service.ports],
            },
        }


def _remove_services(cluster: KubeCluster, release: Record) -> None:
    """Delete the Services of a release, whatever its chart was when they were created."""
    for service in list(cluster.objects("Service", str(release.outputs["namespace"]))):
        labels = (service.inputs.get("metadata") or {}).get("labels") or {}
        if not service.urn and labels.get(_INSTANCE) == release.inputs["name"]:
            cluster.state.remove(service)


def _fullname(release: str, chart: ChartFacts | None, values: Mapping[str, Any]) -> str:
    """Name prefix of a chart's objects. Source: bitnami/charts, bitnami/common/templates/_names.tpl."""
    name = str(values.get("nameOverride") or (chart.name if chart else ""))
    joined = release if name in release else f"{release}-{name}"
    return str(values.get("fullnameOverride") or joined)[:63].removesuffix("-")


def _locatable(chart: str, repository: Any) -> bool:
    if chart.startswith(("oci://", "https://", "http://", "./", "/", "../")) or "/" in chart:
        return True
    return repository is UNKNOWN or bool(isinstance(repository, Mapping) and repository.get("repo"))


def _require_namespace(cluster: KubeCluster, namespace: str, make: bool) -> None:
    if cluster.exists("Namespace", "", namespace) or namespace_exists(cluster.state, cluster, namespace):
        return
    if not make:
        raise no_namespace(namespace)
    cluster.state.put_document(NAMESPACE_SPACE, f"{cluster.identity}|{namespace}", True)


def no_namespace(namespace: str) -> RefusalError:
    """Helm's error for a missing namespace."""
    return RefusalError(
        "NotFound",
        f'create: failed to create: namespaces "{namespace}" not found.',
        "Create the namespace, or set createNamespace.",
    )


def outputs_of(inputs: Properties, chart: ChartFacts | None, revision: int) -> Properties:
    """Outputs of a deployed release."""
    name, namespace = inputs["name"], inputs.get("namespace") or "default"
    version = inputs.get("version") or (chart.version if chart else None)
    same = chart is not None and version == chart.version
    status = {
        "status": "deployed",
        "name": name,
        "namespace": namespace,
        "revision": revision,
        "chart": chart.name if chart else str(inputs.get("chart")).rpartition("/")[2],
        "version": version,
        "appVersion": chart.app if chart and same else None,
    }
    names = {}
    if chart and chart.crds_in == "templates" and chart.crds:
        key = "CustomResourceDefinition.apiextensions.k8s.io/apiextensions.k8s.io/v1"
        names[key] = sorted(crd.name for crd in all_crds(chart))
    return {
        **inputs,
        "namespace": namespace,
        "version": version,
        "status": {key: value for key, value in status.items() if value is not None},
        "resourceNames": names,
    }


def settle(
    call: Call, cluster: KubeCluster, record: Record, before: Record | None, undo: Callable[[], None]
) -> Properties:
    """Wait for a pending release and record its end; returns its outputs.

    Raises RefusalError for a failed atomic install, of which nothing is left, and InitFailedError for every
    other failure. `undo` is called before an atomic release is uninstalled or rolled back to `before`.
    """
    reason, details = _wait(call, cluster, record)
    if not reason:
        return _note(cluster, record, "deployed").outputs
    atomic, failed = bool(record.inputs.get("atomic")), f"release {record.name} failed, and has been "
    if atomic and before is None:
        undo()
        cluster.state.remove(record)
        reason = f"{failed}uninstalled due to atomic being set: {reason}"
        raise RefusalError("InstallFailed", "; ".join([reason, *details]))
    outputs = _note(cluster, record, "failed").outputs
    if atomic and before and before.outputs["status"]["status"] == "deployed":
        undo()
        revision = outputs["status"]["revision"] + 1
        status = {**before.outputs["status"], "revision": revision}
        cluster.state.replace(record, inputs=before.inputs, outputs={**before.outputs, "status": status})
        reason = f"{failed}rolled back due to atomic being set: {reason}"
    elif atomic:
        found = "unable to find a previously successful release when attempting to rollback"
        reason = f"{found}. original upgrade error: {reason}"
    message = (
        f'Helm release "{record.id}" {"" if before else "was created, but "}failed to initialize completely. '
        "Use Helm CLI to investigate: failed to become available within allocated timeout. "
        f"Error: Helm Release {record.id}: {reason}"
    )
    raise InitFailedError(record.id, outputs, [message, *details])


def begin(cluster: KubeCluster, record: Record, inputs: Properties, outputs: Properties) -> Record:
    """Record the start of an upgrade. Raises RefusalError when a killed one left the release pending."""
    status, revision = record.outputs["status"]["status"], record.outputs["status"]["revision"]
    if status.startswith("pending"):
        where = f"{record.inputs['name']} --namespace {record.outputs['namespace']}"
        raise RefusalError(
            "Pending",
            "another operation (install/upgrade/rollback) is in progress",
            f"The release is {status} at revision {revision}: if none is running, a killed update "
            f"left it so. Run helm uninstall {where}, or helm rollback {where}; in a rehearsal, destroy it.",
        )
    return _note(cluster, cluster.state.replace(record, inputs=inputs, outputs=outputs), "pending-upgrade")


def _note(cluster: KubeCluster, record: Record, status: str) -> Record:
    outputs = {**record.outputs, "status": {**record.outputs["status"], "status": status}}
    return cluster.state.replace(record, inputs=record.inputs, outputs=outputs)


def _wait(call: Call, cluster: KubeCluster, record: Record) -> tuple[str, list[str]]:
    """Helm's message and details about a release that is not ready; empty when it is.

    A chart's own pods do not run, but without a node that fits them the release never becomes ready.
    """
    inputs = record.inputs
    skipped = inputs.get("skipAwait") and not inputs.get("atomic")
    if skipped or str(record.outputs["status"]["chart"]).endswith("-crd"):
        return "", []
    timeout = float(inputs.get("timeout") or _TIMEOUT_S)

    def message() -> str:
        return place({}, nodes(cluster), {})[1]

    def details() -> list[str]:
        return [message()]

    ends = ("context deadline exceeded", "context canceled")
    try:
        awaits.until(call, record.id, timeout, lambda: not message(), details, stuck=lambda: True, ends=ends)
    except awaits.GaveUpError as error:
        return error.headline, error.details
    return "", []
