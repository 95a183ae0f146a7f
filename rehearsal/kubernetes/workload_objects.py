"""Objects with behaviour (Deployments, Jobs, Services, claims): readiness and status."""

from collections.abc import Callable
from typing import Any

from rehearsal.core.model import Call, Properties, Record
from rehearsal.core.state import State
from rehearsal.kubernetes.api import awaits
from rehearsal.kubernetes.awaiter.wait_for import built_in, wait_for
from rehearsal.kubernetes.clusters import PACKAGE, KubeCluster, namespace_of
from rehearsal.kubernetes.controllers.kubelet import Kubelet
from rehearsal.kubernetes.controllers.nodes import nodes
from rehearsal.workloads.controllers import Workload, timestamp
from rehearsal.workloads.deployment import DeploymentController
from rehearsal.workloads.job import INTERRUPTED, JobController
from rehearsal.workloads.pod import NOT_OURS

DEPLOYMENT, JOB = "kubernetes:apps/v1:Deployment", "kubernetes:batch/v1:Job"
_SERVICE, _CLAIM = "kubernetes:core/v1:Service", "kubernetes:core/v1:PersistentVolumeClaim"
_DAEMON_SET, _STATEFUL_SET = "kubernetes:apps/v1:DaemonSet", "kubernetes:apps/v1:StatefulSet"
_UNRUN = (_DAEMON_SET, _STATEFUL_SET, awaits.POD)
_AWAITED_UNRUN = (_STATEFUL_SET, awaits.POD)
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
ANNOTATION = "trainstack.dev/rehearsal"
# Last lines of the pods of ended Jobs: "scope|id" -> lines.
_REASONS = "kubernetes-job-reasons"


class WorkloadObjects:
    """Effects of creating, reading, updating and deleting such objects beyond the state."""

    def __init__(self, state: State, kubelet: Kubelet) -> None:
        self._state, self._kubelet = state, kubelet

    def ready(self, call: Call, cluster: KubeCluster, record: Record) -> Properties:
        """Start a new object's workload and wait for it; returns its outputs. Raises GaveUpError."""
        wait = built_in(record.inputs)
        if record.type == DEPLOYMENT:
            self._deploy(call, cluster, record, wait=wait)
        elif record.type == JOB:
            self._run_job(call, cluster, record, wait=wait)
        elif record.type == _SERVICE:
            self._serve(call, cluster, record, wait=wait)
        elif record.type == _CLAIM and wait:
            self._store(record, awaits.claim(call, cluster, record))
        elif record.type in _UNRUN:
            self._await_place(call, cluster, record, wait=wait)
        elif record.type.endswith(_BINDINGS):
            self._check_binding(call, cluster, record)
        self._await_conditions(call, cluster, record)
        return self.live(cluster, record)

    def updated(self, call: Call, cluster: KubeCluster, before: Record, record: Record) -> Properties:
        """Apply a change: a Deployment rolls out when its template changed; a Job is reconciled."""
        wait = built_in(record.inputs)
        run = self._kubelet.find(cluster, record.type.rpartition(":")[2], record.id)
        if record.type == DEPLOYMENT:
            same = before.inputs.get("spec") == record.inputs.get("spec")
            if isinstance(run, DeploymentController) and same:
                if wait:
                    awaits.deployment(call, record, run)
            else:
                self._deploy(call, cluster, record, wait=wait)
        elif isinstance(run, JobController):
            run.look_again()
        if record.type == JOB and wait:
            if isinstance(run, JobController):
                awaits.job(call, record, run)
            awaits.job_ended(
                call, record, self.live(cluster, record).get("status") or {}, self._last_lines(record, run)
            )
        elif record.type == _SERVICE:
            self._serve(call, cluster, record, wait=wait)
        elif record.type in _UNRUN:
            self._await_place(call, cluster, record, wait=wait)
        self._await_conditions(call, cluster, record)
        return self.live(cluster, record)

    def live(self, cluster: KubeCluster | None, record: Record) -> Properties:
        """The current object: the status of running workloads overrides the stored one."""
        current = self._state.get(record.package, record.type, record.scope, record.id) or record
        run = self._running(cluster, record) if cluster else None
        if run is None:
            return current.outputs
        outputs: Properties = {**current.outputs, "status": run.status()}
        not_run = [runner.state.message for runner in run.pods() if not runner.state.run]
        if not_run:
            metadata = dict(outputs["metadata"])
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: not_run[0]}
            outputs["metadata"] = metadata
        return outputs

    def problems(self, cluster: KubeCluster, record: Record, live: Properties) -> list[str]:
        """Problems of an existing object that is not ready, as a refresh reports them."""
        run = self._running(cluster, record)
        if isinstance(run, DeploymentController):
            return awaits.deployment_problems(run)
        if record.type == JOB:
            found = awaits.job_problems(record.name, live.get("status") or {})
            return [*found, *self._last_lines(record, run)] if found else []
        found = awaits.unplaced(cluster, record) if record.type in _AWAITED_UNRUN else []
        return [f"Resource '{record.name}' was created but failed to initialize", *found] if found else []

    def removed(self, cluster: KubeCluster, record: Record) -> None:
        """End the workload of a deleted object."""
        kind = record.type.rpartition(":")[2]
        run = self._running(cluster, record)
        if run is not None:
            self._kubelet.stop(cluster, kind, record.id)
            self._kubelet.forget(cluster, kind, namespace_of(record.outputs), record.name, run.pods())
        if record.type == JOB:
            self._state.drop_document(_REASONS, _key(record))
        if record.type == _SERVICE:
            self._kubelet.services(cluster).close(record.id)

    def restore(self, cluster: KubeCluster) -> None:
        """Restart a cluster's Deployments and waiting Jobs; Jobs that had pods have failed."""
        for record in self._state.find(package=PACKAGE, scope=cluster.scope):
            if record.type == DEPLOYMENT:
                self._kubelet.deploy(cluster, record)
            elif record.type == _SERVICE:
                self._kubelet.services(cluster).open(record)
            elif record.type == JOB:
                self._restore_job(cluster, record)

    # --------------------------------------------------------------------------------------------------

    def _running(self, cluster: KubeCluster, record: Record) -> Workload | None:
        return self._kubelet.find(cluster, record.type.rpartition(":")[2], record.id)

    def _deploy(self, call: Call, cluster: KubeCluster, record: Record, *, wait: bool) -> None:
        run = self._kubelet.deploy(cluster, record)
        try:
            if wait:
                awaits.deployment(call, record, run)
        finally:
            self._store(record, run.status())

    def _await_place(self, call: Call, cluster: KubeCluster, record: Record, *, wait: bool) -> None:
        if wait and record.type in _AWAITED_UNRUN:
            awaits.placed(call, cluster, record)
        self._store(record, _unrun_status(cluster, record))

    def _serve(self, call: Call, cluster: KubeCluster, record: Record, *, wait: bool) -> None:
        self._kubelet.services(cluster).open(record)
        if wait:
            awaits.service(call, record, lambda: list(self._kubelet.pods(cluster.scope)))

    def _run_job(self, call: Call, cluster: KubeCluster, record: Record, *, wait: bool) -> None:
        run = self._start_job(cluster, record, lambda text: call.log("warning", text))
        if not wait:
            return
        try:
            awaits.job(call, record, run)
        except awaits.GaveUpError:
            if call.cancelled.is_set():
                run.interrupt("the update was cancelled")
            raise

    def _start_job(self, cluster: KubeCluster, record: Record, warn: Callable[[str], None]) -> JobController:
        return self._kubelet.run_job(
            cluster,
            record,
            warn=warn,
            # A later process must know whether there were pods.
            runs=lambda runs: self._store(record, {"startTime": timestamp()} if runs else {}),
            ended=lambda status: self._job_ended(cluster, record, status),
        )

    def _restore_job(self, cluster: KubeCluster, record: Record) -> None:
        status = record.outputs.get("status") or {}
        if status.get("conditions"):
            return
        if not status.get("startTime"):  # suspended, or in a queue
            self._start_job(cluster, record, lambda _: None)
            return
        condition = {
            "type": "Failed",
            "status": "True",
            "reason": INTERRUPTED,
            "message": "Job was ended: the rehearsal ended while the Job was running",
            "lastTransitionTime": timestamp(),
        }
        self._store(record, {"failed": 1, "conditions": [condition]})

    def _last_lines(self, record: Record, run: Workload | None) -> list[str]:
        """Last lines of a Job's pods, also of those that ended in an earlier process."""
        kept = awaits.pod_problems(run.pods()) if run else self._state.document(_REASONS, _key(record))
        return [str(line) for line in kept or ()]

    def _job_ended(self, cluster: KubeCluster, record: Record, status: Properties) -> None:
        """Store the end of a Job and its pods' last lines, which this process alone has."""
        run = self._running(cluster, record)
        if run is not None:
            self._state.put_document(_REASONS, _key(record), awaits.pod_problems(run.pods()))
        self._store(record, status)

    def _await_conditions(self, call: Call, cluster: KubeCluster, record: Record) -> None:
        if wait_for(record.inputs):
            awaits.conditions(call, record, lambda: self.live(cluster, record))

    def _store(self, record: Record, status: Properties) -> None:
        """Write the status of an object that still exists."""
        with self._state.transaction():
            current = self._state.get(record.package, record.type, record.scope, record.id)
            if current is not None and current.key == record.key:
                self._state.replace(
                    current, inputs=current.inputs, outputs={**current.outputs, "status": status}
                )

    def _check_binding(self, call: Call, cluster: KubeCluster, record: Record) -> None:
        """A binding to a missing role is accepted by the API server and grants nothing."""
        role = record.inputs.get("roleRef") or {}
        kind, name = str(role.get("kind")), str(role.get("name"))
        namespace = namespace_of(record.outputs) if kind == "Role" else ""
        if not cluster.exists(kind, namespace, name) and not _brought(cluster, kind, name):
            call.log(
                "warning", f"{record.id} refers to {kind} {name}, which does not exist: it grants nothing"
            )


def _brought(cluster: KubeCluster, kind: str, name: str) -> bool:
    """Return whether a release brings a ClusterRole."""
    return kind == "ClusterRole" and any(
        name == role.format(release=release.name)
        for release, chart in cluster.releases()
        for role in (chart.cluster_roles if chart else ())
    )


def _key(record: Record) -> str:
    return f"{record.scope}|{record.id}"


def _unrun_status(cluster: KubeCluster, record: Record) -> dict[str, Any]:
    """Status of a kind whose pods never run here."""
    if record.type == awaits.POD:
        conditions = [{"type": name, "status": "True"} for name in ("PodScheduled", "Initialized", "Ready")]
        return {"phase": "Running", "conditions": conditions, "message": NOT_OURS}
    if record.type == _STATEFUL_SET:
        count = int((record.inputs.get("spec") or {}).get("replicas") or 1)
        return {"replicas": count, "readyReplicas": count, "message": NOT_OURS}
    count = len(nodes(cluster))
    return {"desiredNumberScheduled": count, "numberReady": count, "message": NOT_OURS}
