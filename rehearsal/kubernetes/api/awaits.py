"""Waiting until an object is ready, with the provider's errors on failure."""

import re
import time
from collections.abc import Callable, Sequence

from rehearsal.core.model import Call, Properties, Record
from rehearsal.kubernetes.awaiter.kinds import awaited
from rehearsal.kubernetes.awaiter.wait_for import built_in, conditions_of, wait_for
from rehearsal.kubernetes.clusters import KubeCluster, namespace_of
from rehearsal.kubernetes.controllers import storage_classes
from rehearsal.kubernetes.controllers.nodes import nodes
from rehearsal.kubernetes.diffs import annotations
from rehearsal.kubernetes.kinds import parse
from rehearsal.workloads.controllers import complaints
from rehearsal.workloads.deployment import DeploymentController
from rehearsal.workloads.job import INTERRUPTED, JobController
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.scheduling import place

_DEFAULT_S = 600.0
_RESYNC_S = 60.0  # provider/pkg/await/informers/factory.go
_POLL_S = 0.05
# How long to wait for another resource when nothing changes: a cluster would wait until the timeout, with
# the same result.
_STUCK_S = 60.0
_NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
_TIMEOUT = "pulumi.com/timeoutSeconds"
_JOB = "batch/v1 Job"
POD = "kubernetes:core/v1:Pod"
_ENDLESS = (
    "'{}' would be waited for until the update is cancelled: every event of a Job or Pod of the namespace, "
    "and the resync of the provider's informers once a minute, restarts its timer of {:.0f} s "
    "(pulumi-kubernetes provider/pkg/await/job.go, informers/factory.go). The rehearsal does not wait forever"
)
NO_PODS = (
    "Service does not target any Pods. Selected Pods may not be ready, or "
    "field '.spec.selector' may not match labels on any Pods"
)


class GaveUpError(Exception):
    """A wait failed: summary and details."""

    def __init__(self, headline: str, details: Sequence[str]) -> None:
        self.headline, self.details = headline, list(details)
        super().__init__("; ".join([headline, *details]))


def limit(call: Call, record: Record) -> float:
    """Timeout in seconds. Source: provider/pkg/metadata/overrides.go (TimeoutDuration)."""
    row = awaited().get(str(parse(record.type)))
    if row and row.limit == "fixed" and built_in(record.inputs):
        return row.limit_s
    asked = str(annotations(record.inputs).get(_TIMEOUT))
    default_s = row.limit_s if row else _DEFAULT_S
    return call.timeout_s or (float(asked) if re.fullmatch(r"[+-]?\d+", asked) else default_s)


def until(
    call: Call,
    name: str,
    timeout_s: float,
    ready: Callable[[], bool],
    details: Callable[[], list[str]],
    *,
    stuck: Callable[[], bool] = lambda: False,
    ends: tuple[str, str] | None = None,
    rearmed: bool = False,
) -> None:
    """Poll until ready. Raises GaveUpError on a timeout and when the update is cancelled.

    Also when it was `stuck`, waiting for others only, with the same `details` for a minute. `ends` are the
    messages for both cases, by default those of the built-in awaiters (provider/pkg/await/error.go). A
    `rearmed` timer restarts with every change and at least every minute, so a longer one never fires.
    """
    endless = rearmed and timeout_s > _RESYNC_S
    timed_out, cancelled = ends or (
        f"'{name}' timed out waiting to be Ready",
        f'Resource operation was cancelled for "{name}"',
    )
    if endless:
        timed_out = _ENDLESS.format(name, timeout_s)
    began = moved = time.monotonic()
    reported: list[str] = []
    while not ready():
        if call.cancelled.wait(_POLL_S):
            raise GaveUpError(cancelled, details())
        time_is, now = time.monotonic(), details()
        if rearmed and now != reported:
            began = time_is
        if now != reported or not stuck():
            moved = time_is
        if (time_is >= began + timeout_s and not endless) or time_is >= moved + _STUCK_S:
            raise GaveUpError(timed_out, now)
        if now != reported:
            reported = now
            call.log("status", now[0] if now else f"Waiting for {name}")


def conditions(call: Call, record: Record, live: Callable[[], Properties]) -> None:
    """Wait for the conditions of `pulumi.com/waitFor`. Source: provider/pkg/await/internal/awaiter.go."""
    given = conditions_of(wait_for(record.inputs))

    def missing() -> list[str]:
        now = live()
        return [text for condition in given if (text := condition(now))]

    ends = ("timed out waiting for the condition", "context canceled")
    limit_s = limit(call, record)
    until(call, record.name, limit_s, lambda: not missing(), missing, ends=ends)


def deployment(call: Call, record: Record, run: DeploymentController) -> None:
    """Wait for a Deployment's pods."""
    until(
        call,
        record.name,
        limit(call, record),
        lambda: run.ready,
        lambda: deployment_problems(run),
        stuck=lambda: _kept_waiting(run.pods()),
    )


def deployment_problems(run: DeploymentController) -> list[str]:
    """Problems of a Deployment that is not available."""
    if run.ready:
        return []
    condition = run.status()["conditions"][0]
    return [
        f"[{condition['reason']}] {condition['message']}",
        "Minimum number of live Pods was not attained",
        *pod_problems(run.pods()),
    ]


def job(call: Call, record: Record, run: JobController) -> None:
    """Wait for a Job's completion; a failed Job ends the wait at once, as nothing can change that."""

    def details() -> list[str]:
        queue = [f'Job "{record.id}" does not start: {run.held}'] if run.held else []
        return queue + complaints(run.pods())

    until(
        call,
        record.name,
        limit(call, record),
        run.over.is_set,
        details,
        # A running pod may print nothing.
        stuck=lambda: all(runner.state.over or runner.state.phase == "Pending" for runner in run.pods()),
        rearmed=True,
    )
    job_ended(call, record, run.status(), pod_problems(run.pods()))


def job_ended(call: Call, record: Record, status: Properties, reported: Sequence[str]) -> None:
    """Raise GaveUpError for a Job that did not complete; `reported` are the last lines of its pods."""
    headline, *details = job_problems(record.name, status) or [""]
    reason, message = _failure(status)
    if reason and not details:
        headline = _ENDLESS.format(record.name, limit(call, record))
        details = [f"[{reason}] {message}. The provider does not treat this reason as an error"]
    if headline:
        raise GaveUpError(headline, [*details, *reported])


def job_problems(name: str, status: Properties) -> list[str]:
    """Problems of a Job by its status; empty when it is complete."""
    if any(row["type"] == "Complete" and row["status"] == "True" for row in status.get("conditions") or ()):
        return []
    reason, message = _failure(status)
    details = [f"[{reason}] {message}"] if reason in (*awaited()[_JOB].errors, INTERRUPTED) else []
    return [f"Resource '{name}' was created but failed to initialize", *details]


def _failure(status: Properties) -> tuple[str, str]:
    rows = [
        row for row in status.get("conditions") or () if (row["type"], row["status"]) == ("Failed", "True")
    ]
    return (rows[0]["reason"], rows[0]["message"]) if rows else ("", "")


def placed(call: Call, cluster: KubeCluster, record: Record) -> None:
    """Wait until nodes fit the pods of an object whose pods do not run here."""

    def details() -> list[str]:
        return unplaced(cluster, record)

    row = awaited()[str(parse(record.type))]
    until(
        call,
        record.name,
        limit(call, record),
        lambda: not details(),
        details,
        stuck=lambda: True,
        rearmed=row.limit == "rearmed",
    )


def unplaced(cluster: KubeCluster, record: Record) -> list[str]:
    """The reason why no node fits pods that do not run here; empty when one does."""
    spec = record.inputs.get("spec") or {}
    replicas = None if record.type == POD else spec.get("replicas", 1)
    message = place(spec if replicas is None else spec["template"]["spec"], nodes(cluster), {})[1]
    if not message or replicas == 0:
        return []
    counted = [f"0 out of {replicas} replicas succeeded readiness checks"] if replicas else []
    return [*counted, f"[Unschedulable] {message}"]


def service(call: Call, record: Record, pods: Callable[[], list[PodRunner]]) -> None:
    """Wait while a Service selects pods that are not ready; one that selects none is ready."""
    spec = record.inputs.get("spec") or {}
    selector = spec.get("selector") or {}
    if not selector or spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName":
        return
    namespace = namespace_of(record.outputs)

    def members() -> list[PodRunner]:
        return [
            runner
            for runner in pods()
            if runner.pod.namespace == namespace and selector.items() <= dict(runner.pod.labels).items()
        ]

    def ready() -> bool:
        return all(runner.state.ready for runner in members())

    limit_s = limit(call, record)
    until(call, record.name, limit_s, ready, lambda: [NO_PODS], stuck=lambda: _kept_waiting(members()))


def _kept_waiting(pods: Sequence[PodRunner]) -> bool:
    """Return whether all pods that are not ready wait for a node, a volume or an object."""
    return all(runner.state.ready or runner.state.phase == "Pending" for runner in pods)


def claim(call: Call, cluster: KubeCluster, record: Record) -> Properties:
    """Wait until a PersistentVolumeClaim can be bound; returns its status."""
    spec = record.inputs.get("spec") or {}
    capacity = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    bound: Properties = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes"),
        "capacity": {"storage": capacity},
    }

    def details() -> list[str]:
        return [] if _volume(cluster, record) else [f'persistentvolume "{spec.get("volumeName")}" not found']

    if not spec.get("volumeName"):
        return _dynamic(call, cluster, record, bound)
    until(call, record.name, limit(call, record), lambda: not details(), details, stuck=lambda: True)
    return bound


def _volume(cluster: KubeCluster, record: Record) -> Record | None:
    """The volume of a claim, if it exists and fits."""
    spec = record.inputs["spec"]
    volume = cluster.get("PersistentVolume", "", spec["volumeName"])
    if volume is None:
        return None
    offered = volume.inputs.get("spec") or {}
    same_class = (spec.get("storageClassName") or "") == (offered.get("storageClassName") or "")
    modes = set(spec.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
    return volume if same_class and modes else None


def _dynamic(call: Call, cluster: KubeCluster, record: Record, bound: Properties) -> Properties:
    """Status of a claim that its StorageClass provisions, at once or with the first pod."""
    given = record.inputs["spec"].get("storageClassName")

    def waits() -> bool | None:
        name = storage_classes.default(cluster) if given is None else str(given)
        return storage_classes.waits_for_pod(cluster, name)

    problem = f'storageclass.storage.k8s.io "{given}" not found' if given else _NO_CLASS
    until(
        call,
        record.name,
        limit(call, record),
        lambda: waits() is not None,
        lambda: [] if waits() is not None else [problem],
        stuck=lambda: True,
    )
    return {"phase": "Pending"} if waits() else bound


def pod_problems(pods: Sequence[PodRunner]) -> list[str]:
    """Problems of pods, with the last output of the worst one."""
    return [*complaints(pods), *last_lines(pods)]


def last_lines(pods: Sequence[PodRunner]) -> list[str]:
    """End of the log of the pod with the worst state."""
    for runner in pods:
        if runner.state.exit_code and (tail := runner.log_tail()):
            return [f"Last lines of {runner.log}:\n" + "\n".join(f"  {line}" for line in tail)]
    return []
