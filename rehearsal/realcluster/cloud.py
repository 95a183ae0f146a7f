"""The `kubernetes` package on real control planes.

Objects are in the API servers. The state only records which resource created which object, so that objects of
a killed engine are found.
"""

from pathlib import Path
from typing import Any

from rehearsal.controlplane.api import KubernetesApi, Object, UnknownKindError
from rehearsal.core.model import (
    Call,
    CheckFailure,
    Diff,
    EmulatedCloud,
    InitFailedError,
    Properties,
    ProviderInstance,
    Record,
    RefusalError,
)
from rehearsal.core.properties import at
from rehearsal.core.schema import Schemas
from rehearsal.core.state import DuplicateError, State
from rehearsal.kubernetes import functions, helm, settings
from rehearsal.kubernetes.api import objects, partial_state
from rehearsal.kubernetes.api.awaits import GaveUpError
from rehearsal.kubernetes.api.retries import retried
from rehearsal.kubernetes.awaiter.wait_for import skipped
from rehearsal.kubernetes.checks import checked
from rehearsal.kubernetes.clusters import (
    PACKAGE,
    kubeconfig,
    namespace_of,
    resolve,
)
from rehearsal.kubernetes.diffs import REPLACE_UNREADY, annotations, diff, keeps_name, normalized
from rehearsal.kubernetes.kinds import HELM_RELEASE, ObjectKind, is_patch
from rehearsal.realcluster import awaits, releases, writes
from rehearsal.realcluster.cluster import RealCluster
from rehearsal.realcluster.plane import Plane
from rehearsal.realcluster.planes import planes_of

_NAMESPACE = "kubernetes:core/v1:Namespace"
_HEALTH = ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "Service", "Ingress")


class RealKubernetesCloud(EmulatedCloud):
    """See `model.EmulatedCloud`; also lists and ends what runs on the control plane's nodes."""

    package = PACKAGE

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.version = schemas.version
        self.state, self._schemas = state, schemas
        self.planes = planes_of(state, home)

    def settings_for(self, record: Record) -> Properties:
        """See `model.EmulatedCloud`."""
        return {"kubeconfig": kubeconfig(self.state, record.scope)}

    # -- the daemon's side -----------------------------------------------------------------------------

    def restore(self) -> None:
        """Start the control planes of this home again."""
        self.planes.restore()

    def hold(self) -> None:
        """Start the control planes for a foreign provider."""
        self.planes.hold()

    def live_workloads(self) -> list[dict[str, Any]]:
        """Pods with processes, and the control planes while they have objects."""
        rows = [row for row in self.planes.pods() if row["run"] and row["phase"] in ("Pending", "Running")]
        return [*rows, *self.planes.describe()]

    def stop(self) -> None:
        """End every process."""
        self.planes.stop()

    # -- model.Cloud -----------------------------------------------------------------------------------

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """See `model.EmulatedCloud`."""
        del config
        return []

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """See `model.EmulatedCloud`."""
        return settings.replacing(old, new)

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """See `model.EmulatedCloud`; the API server validates the rest."""
        return checked(self._schemas, call, old, new)

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """See `model.EmulatedCloud`."""
        if call.type == HELM_RELEASE:
            return helm.diff(old_inputs, new)
        kind = writes.kind_of(call.type)
        asked = partial_state.asked(old_inputs, old_outputs)
        found = diff(kind, asked, old_outputs, new, call.instance.config)
        same = _only_normalized(self._record(call, id), kind, (asked, old_outputs), new, found)
        changed = tuple(path for path in found.changed if path not in same)
        replaces = tuple(path for path in found.replaces if path not in same)
        if kind.kind == "Job" and annotations(new).get(REPLACE_UNREADY) == "true":
            live = self._live(call, id)
            if live and not awaits.judge(live, awaits.RelatedObjects()).ready:
                path = f'metadata.annotations["{REPLACE_UNREADY}"]'
                return Diff((*changed, path), (*replaces, path), keeps_name(old_outputs, new))
        return Diff(changed, replaces, found.delete_before_replace and bool(replaces))

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        cluster = self._cluster(call)
        if call.type == HELM_RELEASE:
            if preview or cluster is None:
                return "", helm.preview(inputs)
            return releases.create(call, self._plane(cluster), cluster, inputs)
        kind, body = writes.kind_of(call.type), writes.body_of(call.type, inputs)
        if preview or cluster is None:
            seen = (
                writes.dry_create(cluster.api, body, call.type) if cluster and writes.known(inputs) else None
            )
            return "", seen or objects.previewed(kind, inputs, self._namespace(cluster, body), None)
        asking = writes.refusals()
        resource = retried(call, asking(lambda: cluster.api.resource(kind.api_version, kind.kind)))
        name = str(inputs["metadata"]["name"])
        namespace = str(inputs["metadata"].get("namespace") or "default")
        record = self._note(call, cluster, f"{namespace}/{name}" if resource.namespaced else name, inputs)
        upsert = str(call.instance.config.get("upsertExistingObjects")).lower() == "true"
        try:
            live = retried(
                call,
                asking(
                    lambda: (
                        writes.apply(cluster.api, body, writes.manager_of(call))
                        if is_patch(call.type) or upsert
                        else cluster.api.create(body, manager=writes.MANAGER)
                    )
                ),
            )
        except RefusalError:
            self.state.remove(record)
            raise
        try:
            return record.id, self._ready(call, cluster, record, live)
        except _NotReadyError as error:
            raise partial_state.created(call, record.id, error.live, error.why) from error

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """See `model.EmulatedCloud`."""
        record = self._record(call, id)
        if call.type == HELM_RELEASE:
            cluster = self._cluster(call)
            return releases.read(cluster, record) if record and cluster else None
        live = self._live(call, id)
        if live is None:
            return None
        asked = inputs or (record.inputs if record else _as_inputs(live))
        if live["kind"] in _HEALTH and call.remembered and not skipped(asked):
            cluster = self._cluster(call)
            assert cluster is not None
            with writes.refusals():
                verdict = awaits.judge(live, awaits.look_around(cluster.api, live))
            if not verdict.ready:
                name = live["metadata"]["name"]
                headline = f"Resource '{name}' was created but failed to initialize"
                raise InitFailedError(id, writes.shown(live), [headline, *verdict.problems])
        return asked, writes.shown(live)

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`."""
        cluster, record = self._cluster(call), self._record(call, id)
        if call.type == HELM_RELEASE:
            if preview or cluster is None or record is None:
                return helm.preview(inputs)
            return releases.update(call, self._plane(cluster), cluster, record, inputs)
        kind, body = writes.kind_of(call.type), writes.body_of(call.type, inputs)
        if preview or cluster is None:
            manager = writes.manager_of(call)
            seen = writes.dry_update(cluster.api, body, manager) if cluster and writes.known(inputs) else None
            return seen or objects.previewed(kind, inputs, namespace_of(old_outputs), old_outputs)
        record = (
            self.state.replace(record, inputs=inputs, outputs=record.outputs)
            if record
            else self._note(call, cluster, id, inputs)
        )
        try:
            with writes.refusals():
                live = writes.apply(cluster.api, body, writes.manager_of(call))
        except RefusalError as refusal:
            before = self._live(call, id)
            if before is None:
                raise
            raise partial_state.updated(id, writes.shown(before), inputs, refusal) from refusal
        try:
            return self._ready(call, cluster, record, live)
        except _NotReadyError as error:
            raise partial_state.updated(record.id, error.live, inputs, error.why) from error

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        cluster, record = self._cluster(call), self._record(call, id)
        if cluster is None:
            return
        if call.type == HELM_RELEASE:
            if record:
                releases.delete(self._plane(cluster), cluster, record)
            return
        live = self._live(call, id)
        if live is not None and is_patch(call.type):
            metadata = {name: live["metadata"].get(name) for name in ("name", "namespace")}
            with writes.refusals():  # releases the fields that it owns
                cluster.api.apply(
                    {**{name: live[name] for name in ("apiVersion", "kind")}, "metadata": metadata},
                    manager=writes.manager_of(call),
                )
        elif live is not None:
            writes.delete(call, cluster.api, live)
        if record:
            self._forget(record)

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """See `model.EmulatedCloud`."""
        del instance
        return functions.call(token, args)

    # --------------------------------------------------------------------------------------------------

    def _cluster(self, call: Call) -> RealCluster | None:
        found = resolve(self.state, call.instance.config)
        return RealCluster(self.state, found.record, self.planes.of(found.record).api()) if found else None

    def _plane(self, cluster: RealCluster) -> Plane:
        return self.planes.of(cluster.record)

    def _record(self, call: Call, id: str) -> Record | None:
        found = resolve(self.state, call.instance.config)
        return self.state.get(PACKAGE, call.type, found.scope, id) if found else None

    def _live(self, call: Call, id: str) -> Object | None:
        cluster = self._cluster(call)
        if cluster is None:
            return None
        kind = writes.kind_of(call.type)
        namespace, _, name = id.rpartition("/")
        try:
            with writes.refusals():
                return cluster.api.find(kind.api_version, kind.kind, name, namespace or "default")
        except RefusalError as refusal:
            if refusal.code != "NoMatch":
                raise
            return None

    def _forget(self, record: Record) -> None:
        """Remove the record of a deleted object; with a namespace, those of the objects in it."""
        if record.type == _NAMESPACE:
            for inside in self.state.find(package=PACKAGE, scope=record.scope):
                if inside.id.startswith(f"{record.name}/") and inside.type != HELM_RELEASE:
                    self.state.remove(inside)
        self.state.remove(record)

    def _note(self, call: Call, cluster: RealCluster, id: str, inputs: Properties) -> Record:
        """Record the creator of an object before its creation."""
        try:
            return self.state.insert(
                package=PACKAGE, type=call.type, scope=cluster.scope, id=id, urn=call.urn,
                name=id.rpartition("/")[2], inputs=inputs, outputs={},
            )  # fmt: skip
        except DuplicateError as error:
            raise RefusalError("AlreadyExists", f'{call.type} "{id}" already exists.') from error

    def _ready(self, call: Call, cluster: RealCluster, record: Record, live: Object) -> Properties:
        """Wait for an object; returns its outputs. Raises _NotReadyError when it exists but is not ready."""
        latest, inputs = live, record.inputs

        def read() -> Object:
            nonlocal latest
            latest = _get(cluster.api, live)
            return latest

        try:
            with writes.refusals():
                latest = live if skipped(inputs) else awaits.wait(call, cluster.api, live, record, read)
        except GaveUpError as error:
            raise _NotReadyError(writes.shown(latest), error) from error
        finally:
            self.state.replace(record, inputs=inputs, outputs=writes.shown(latest))
        return writes.shown(latest)

    def _namespace(self, cluster: RealCluster | None, body: Object) -> str:
        """Namespace in a preview, empty for none or an unknown kind."""
        metadata = body.get("metadata")
        if cluster is None or not isinstance(metadata, dict):
            return ""
        try:
            namespaced = cluster.api.resource(body["apiVersion"], body["kind"]).namespaced
        except UnknownKindError:
            return ""
        return (metadata.get("namespace") or "default") if namespaced else ""


class _NotReadyError(Exception):
    """An object that was not ready in time, with its current state."""

    def __init__(self, live: Properties, why: GaveUpError) -> None:
        self.live, self.why = live, why
        super().__init__(str(why))


def _only_normalized(
    record: Record | None, kind: ObjectKind, old: tuple[Properties, Properties], new: Properties, found: Diff
) -> set[str]:
    """Paths with equal values in another notation: the server normalizes values (0.5 is 500m).

    `old` are the inputs and the outputs that the engine knows; `record` has the outputs of the last write.
    """
    if record is None or not record.outputs:
        return set()
    asked, live = (normalized(kind, one) for one in old)
    wanted, was = normalized(kind, new), normalized(kind, record.outputs)
    return {
        path
        for path in found.changed
        if at(asked, path) == at(wanted, path) and at(was, path) == at(live, path)
    }


def _get(api: KubernetesApi, live: Object) -> Object:
    metadata = live["metadata"]
    return api.get(live["apiVersion"], live["kind"], metadata["name"], metadata.get("namespace") or "")


def _as_inputs(live: Object) -> Properties:
    asked = {name: value for name, value in writes.shown(live).items() if name != "status"}
    kept = {name: value for name, value in asked["metadata"].items() if name not in writes.SERVER_SET}
    return {**asked, "metadata": kept}
