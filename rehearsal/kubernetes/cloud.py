"""The emulated `kubernetes` package: objects in the state, workloads as processes."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.in_flight import InFlight
from rehearsal.core.model import (
    UNKNOWN,
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
from rehearsal.core.schema import Schemas
from rehearsal.core.state import DuplicateError, State
from rehearsal.kubernetes import ambient, functions, helm, settings
from rehearsal.kubernetes.api import awaits, finalizers, objects, partial_state
from rehearsal.kubernetes.api.retries import retried
from rehearsal.kubernetes.awaiter.wait_for import skipped
from rehearsal.kubernetes.aws import roles as aws_roles
from rehearsal.kubernetes.checks import checked
from rehearsal.kubernetes.clusters import PACKAGE, KubeCluster, kubeconfig, made, namespace_of, resolve
from rehearsal.kubernetes.controllers import load_balancers
from rehearsal.kubernetes.controllers.kubelet import Kubelet
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from rehearsal.kubernetes.diffs import REPLACE_UNREADY, annotations, diff, keeps_name
from rehearsal.kubernetes.gcp import identity as google_identity
from rehearsal.kubernetes.kinds import HELM_RELEASE, ObjectKind, builtin_namespaced, is_patch, parse
from rehearsal.kubernetes.pod_api import PodApi
from rehearsal.kubernetes.rules import admission
from rehearsal.kubernetes.workload_objects import WorkloadObjects
from rehearsal.workloads.translate import Pod

# Factor by which retries of creates are faster than in the provider.
_RETRY_TIMES = 10.0
# How long to wait for objects that a controller would wait for, such as a priority class of its pods.
_APPEARS_S = 2.0


class KubernetesCloud(EmulatedCloud):
    """See `model.EmulatedCloud`; also restores, lists and ends the processes of workloads."""

    package = PACKAGE

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        self.version = schemas.version
        self._state, self._schemas = state, schemas
        self._identities = PodIdentities(state)
        self._kubelet = Kubelet(state, home, self._identity, self._account)
        self._pod_api = PodApi(home, self._kubelet)
        self._workloads = WorkloadObjects(state, self._kubelet)
        self._deletes = InFlight()
        self._unchecked: set[str] = set()  # custom kinds that were reported as having no known schema

    def settings_for(self, record: Record) -> Properties:
        """See `model.EmulatedCloud`."""
        return {"kubeconfig": kubeconfig(self._state, record.scope)}

    # -- the daemon's side -----------------------------------------------------------------------------

    def restore(self) -> None:
        """Restart the processes of stored Deployments; Jobs that were running have failed."""
        for record in (*made(self._state), ambient.RECORD):
            self._workloads.restore(KubeCluster(self._state, record))

    def live_workloads(self) -> list[dict[str, Any]]:
        """Pods that have, or will have, processes."""
        return [
            row for row in self._kubelet.describe() if row["run"] and row["phase"] in ("Pending", "Running")
        ]

    def workloads(self) -> list[dict[str, Any]]:
        """Every pod of every workload, ended ones and those that do not run here included."""
        return self._kubelet.describe()

    def stop(self) -> None:
        """End every process."""
        self._kubelet.stop_all()
        self._identities.stop()
        self._pod_api.stop()

    # -- model.Cloud -----------------------------------------------------------------------------------

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Accepts any configuration: the cluster may not exist yet."""
        del config
        return []

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """See `model.EmulatedCloud`."""
        return settings.replacing(old, new)

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """See `model.EmulatedCloud`."""
        schema = self._schemas.resource(call.type)
        inputs, failures = checked(self._schemas, call, old, new)
        if call.type != HELM_RELEASE:
            failures += admission.check(call.type, inputs, custom=schema is None, reported=failures)
        return inputs, failures

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """See `model.EmulatedCloud`."""
        if call.type == HELM_RELEASE:
            return helm.diff(old_inputs, new)
        kind = parse(call.type)
        asked = partial_state.asked(old_inputs, old_outputs)
        found = diff(kind, asked, old_outputs, new, call.instance.config)
        if kind.kind == "Job" and annotations(new).get(REPLACE_UNREADY) == "true":
            cluster = resolve(self._state, call.instance.config)
            record = self._get(cluster, call.type, id) if cluster else None
            if record and awaits.job_problems(
                record.name, self._workloads.live(cluster, record).get("status") or {}
            ):
                path = f'metadata.annotations["{REPLACE_UNREADY}"]'
                return Diff((*found.changed, path), (*found.replaces, path), keeps_name(old_outputs, new))
        return found

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        cluster = resolve(self._state, call.instance.config)
        if call.type == HELM_RELEASE:
            if preview or cluster is None:
                return "", helm.preview(inputs)
            aws_roles.warn(call, cluster, inputs)
            return helm.create(call, cluster, inputs)
        kind = parse(call.type)
        if cluster is None or preview:
            return "", self._preview(call, cluster, kind, inputs)
        namespace = retried(call, lambda: self._namespace(call, cluster, kind, inputs), times=_RETRY_TIMES)
        self._admit(call, cluster, inputs)
        record = self._insert(call, cluster, kind, inputs, namespace)
        load_balancers.sync(cluster, record)
        try:
            return record.id, self._workloads.ready(call, cluster, record)
        except awaits.GaveUpError as error:
            raise partial_state.created(
                call, record.id, self._workloads.live(cluster, record), error
            ) from error

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """See `model.EmulatedCloud`."""
        cluster = resolve(self._state, call.instance.config)
        record = self._get(cluster, call.type, id) if cluster else None
        if cluster is None or record is None:
            return None
        live = self._workloads.live(cluster, record)
        if call.type == HELM_RELEASE:
            return record.inputs, live
        found = partial_state.seen(parse(call.type), live, inputs or record.inputs)
        problems = [] if skipped(record.inputs) else self._workloads.problems(cluster, record, live)
        if problems:
            raise InitFailedError(record.id, live, problems, found)
        return found, live

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`."""
        cluster = resolve(self._state, call.instance.config)
        if call.type == HELM_RELEASE and preview:
            return helm.preview(inputs)
        kind = parse(call.type)
        if preview or cluster is None:
            return objects.previewed(kind, inputs, namespace_of(old_outputs), old_outputs)
        record = self._get(cluster, call.type, id)
        if record is None:
            raise RefusalError("NotFound", f'{kind.kind} "{id}" not found')
        if call.type == HELM_RELEASE:
            aws_roles.warn(call, cluster, inputs)
            return helm.update(call, cluster, record, inputs)
        before = record
        try:
            self._admit(call, cluster, inputs)
            outputs = objects.changed(kind, record.outputs, inputs)
            record = self._state.replace(record, inputs=inputs, outputs=outputs)
            load_balancers.sync(cluster, record)
            return self._workloads.updated(call, cluster, before, record)
        except (awaits.GaveUpError, RefusalError) as error:
            live = self._workloads.live(cluster, record)
            raise partial_state.updated(record.id, live, inputs, error) from error

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        del outputs
        cluster = resolve(self._state, call.instance.config)
        record = self._get(cluster, call.type, id) if cluster else None
        if cluster is None or record is None:
            return
        finalizers.wait_released(call, cluster, record, self._deletes)
        with self._deletes.working():
            if call.type == HELM_RELEASE:
                helm.delete(cluster, record)
                return
            if record.type == "kubernetes:core/v1:Namespace":
                for inside in self._state.find(package=PACKAGE, scope=cluster.scope):
                    if namespace_of(inside.outputs) == record.name and inside.type != HELM_RELEASE:
                        self._remove(cluster, inside)
            self._remove(cluster, record)

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """See `model.EmulatedCloud`."""
        del instance
        return functions.call(token, args)

    # --------------------------------------------------------------------------------------------------

    def _get(self, cluster: KubeCluster, token: str, id: str) -> Record | None:
        found = self._state.get(PACKAGE, token, cluster.scope, id)
        return found or self._state.get(PACKAGE, token, cluster.scope, f"default/{id}")

    def _preview(
        self, call: Call, cluster: KubeCluster | None, kind: ObjectKind, inputs: Properties
    ) -> Properties:
        """Outputs of an object in a preview; certain errors are raised now."""
        metadata = inputs.get("metadata")
        namespace = ""
        if isinstance(metadata, Mapping) and self._namespaced(call.type, cluster, kind) is not False:
            namespace = metadata.get("namespace") or "default"
        if cluster and isinstance(metadata, Mapping) and UNKNOWN not in (metadata.get("name"), namespace):
            taken = self._holder(cluster, kind, str(metadata.get("name")), namespace)
            if taken is not None:
                self._refuse_taken(call, kind, taken)
        return objects.previewed(kind, inputs, namespace, None)

    def _namespaced(self, token: str, cluster: KubeCluster | None, kind: ObjectKind) -> bool | None:
        """Return whether a kind's objects live in a namespace; None when the cluster does not serve it."""
        if self._schemas.resource(token) is not None:
            return builtin_namespaced(kind.kind.removesuffix("Patch") if is_patch(token) else kind.kind)
        crd = cluster.serves(kind) if cluster else None
        return crd.namespaced if crd else None

    def _namespace(self, call: Call, cluster: KubeCluster, kind: ObjectKind, inputs: Properties) -> str:
        """Namespace of a new object, empty for none. Raises RefusalError if it or the kind is missing."""
        namespaced = self._namespaced(call.type, cluster, kind)
        if namespaced is None:  # the kind is not served, which a rule reports
            admission.admit(call.type, inputs, cluster, custom=True)
        if not namespaced:
            return ""
        name = str((inputs.get("metadata") or {}).get("namespace") or "default")
        made_by_helm = helm.namespace_exists(self._state, cluster, name)
        if not made_by_helm and not cluster.exists("Namespace", "", name):
            raise RefusalError(
                "NotFound", f'namespaces "{name}" not found.', "Create it first and depend on it."
            )
        return name

    def _admit(self, call: Call, cluster: KubeCluster, inputs: Properties) -> None:
        """Apply the rule book; waits a moment for missing objects that may still be created."""
        custom = self._schemas.resource(call.type) is None
        ends = time.monotonic() + _APPEARS_S
        while admission.breaks(call.type, inputs, cluster, custom=custom):
            if time.monotonic() >= ends or call.cancelled.wait(0.1):
                break
        for advice in admission.admit(call.type, inputs, cluster, custom=custom):
            call.log("warning", advice)
        aws_roles.warn(call, cluster, inputs)
        google_identity.warn(call, cluster, inputs)
        if custom and call.type not in self._unchecked and not admission.has_schema(call.type, cluster):
            self._unchecked.add(call.type)
            call.log("info", f"{call.type}: its definition is not known here, so its fields were not checked")

    def _insert(
        self, call: Call, cluster: KubeCluster, kind: ObjectKind, inputs: Properties, namespace: str
    ) -> Record:
        name = str(inputs["metadata"]["name"])
        taken = self._holder(cluster, kind, name, namespace)
        if taken is not None:
            self._refuse_taken(call, kind, taken)
            call.log("warning", f"{taken.id} exists, left by an interrupted update, and is created again")
            self._remove(cluster, taken)
        try:
            return self._state.insert(
                package=PACKAGE,
                type=call.type,
                scope=cluster.scope,
                id=f"{namespace}/{name}" if namespace else name,
                urn=call.urn,
                name=name,
                inputs=inputs,
                outputs=objects.born(kind, inputs, namespace, on_aws=cluster.on_aws),
            )
        except DuplicateError as error:
            raise _exists(kind, name) from error

    def _holder(self, cluster: KubeCluster, kind: ObjectKind, name: str, namespace: str) -> Record | None:
        """The object with this name, in any version."""
        for record in self._state.find(package=PACKAGE, scope=cluster.scope, name=name):
            other = parse(record.type)
            same = (other.group, other.kind) == (kind.group, kind.kind)
            if same and record.type != HELM_RELEASE and namespace_of(record.outputs) == namespace:
                return record
        return None

    def _refuse_taken(self, call: Call, kind: ObjectKind, taken: Record) -> None:
        """Refuse a name in use, unless the object is this resource's own.

        An engine that has the object in its state would not create it again (given names are deleted first):
        an update was interrupted before it could record the object.
        """
        upsert = str(call.instance.config.get("upsertExistingObjects")).lower() == "true"
        if taken.urn != call.urn and not upsert:
            raise _exists(kind, taken.name)

    def _remove(self, cluster: KubeCluster, record: Record) -> None:
        self._workloads.removed(cluster, record)
        load_balancers.remove(cluster, record)
        self._state.remove(record)

    def _account(self, cluster: KubeCluster, pod: Pod) -> Mapping[str, bytes]:
        return {"token": self._pod_api.token(cluster, pod), "ca.crt": self._pod_api.authority}

    def _identity(self, cluster: KubeCluster, pod: Pod, folder: Path) -> Mapping[str, str]:
        """Environment with which a pod reaches its cloud and the API server."""
        own = self._identities.environment(cluster, pod, folder)
        return {**own, **self._pod_api.environment()}


def _exists(kind: ObjectKind, name: str) -> RefusalError:
    plural = kind.kind.lower() + ("" if kind.kind.endswith("s") else "s")
    group = f".{kind.group}" if kind.group else ""
    return RefusalError(
        "AlreadyExists",
        f'{plural}{group} "{name}" already exists.',
        "Use another name, delete the object, or import it.",
    )
