"""The queues of a stack in a real cluster: the component's own objects, nodes of the catalog, and jobs."""

import datetime
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from components.aws.pools.offers import node_offer
from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.kueue import API_VERSION, GATE_NAMESPACE, GPU_TAINT, PRIORITY_LABEL
from components.kubernetes.queueing.queues import SendsArgs
from components.kubernetes.queueing.quotas import GPU, FlavorArgs, GateArgs, TeamArgs
from infra.catalog.aws import facts
from infra.naming import team_namespace
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.nodes import KwokPool, pool_nodes
from tests.cluster.queues.generated import Queues, generated
from tests.cluster.waiting import counted, eventually, gone

_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
IMAGE = "example.com/python@sha256:" + "0" * 64
NO_GATE: GateArgs = {"nodes": {}}


def flavor(name: str, machine: str, nodes: int, **more: Any) -> FlavorArgs:
    """A pool of machines of the catalog, as a stack hands it to its queues."""
    known = facts.instance_type(machine)
    made = {
        "name": name,
        "node_labels": {POOL_LABEL: name},
        "max_nodes": nodes,
        **node_offer(known, "device_plugin" if known.efa_interfaces else None),
        **more,
    }
    return cast(FlavorArgs, made)


@dataclass
class Lab:
    """Queues that stand; teams are named as they were given, jobs by what `submit` calls them."""

    api: KubernetesApi
    namespaces: Mapping[str, str]
    jobs: dict[str, str] = field(default_factory=dict)
    """Namespace of each job."""

    def submit(
        self, team: str, name: str, *, gpus: int = 0, pods: int = 1, seconds: float | None = None,
        priority: str = "", pod: Mapping[str, Any] | None = None, notes: Mapping[str, str] | None = None,
        cpu: str = "1", tolerate: bool | None = None, labels: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """A Job as a user writes it: no queue, no node; it tolerates GPU nodes where it requests GPUs."""
        asked = {"cpu": cpu, "memory": "1Gi", **({GPU: str(gpus)} if gpus else {})}
        container = {
            "name": "main", "image": "example.com/none:1", "command": ["true"],
            "resources": {"requests": asked, "limits": asked},
        }  # fmt: skip
        tolerant = bool(gpus) if tolerate is None else tolerate
        lasting = {} if seconds is None else {"trainstack.dev/seconds": f"{seconds}s"}
        spec = {
            "restartPolicy": "Never",
            "containers": [container],
            "tolerations": [_TOLERATION] if tolerant else [],
            **(pod or {}),
        }
        self.create(self.namespaces[team], {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "labels": {**(labels or {}), **({PRIORITY_LABEL: priority} if priority else {})},
            },
            "spec": {
                "completionMode": "Indexed", "completions": pods, "parallelism": pods, "backoffLimit": 0,
                "template": {"metadata": {"annotations": {**lasting, **(notes or {})}}, "spec": spec},
            },
        })  # fmt: skip

    def create(self, namespace: str, body: Object) -> None:
        """Create a Job in a namespace and remember where it is."""
        metadata = {**body["metadata"], "namespace": namespace}
        self.api.create({**body, "metadata": metadata})
        self.jobs[metadata["name"]] = namespace

    def job(self, name: str) -> Object:
        """The Job itself."""
        return self.api.get("batch/v1", "Job", name, self.jobs[name])

    def pods(self, name: str) -> list[Object]:
        """The Job's pods that are not on their way out."""
        labels = f"batch.kubernetes.io/job-name={name}"
        found = self.api.list("v1", "Pod", self.jobs[name], labels=labels)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def history(self, name: str, job: str) -> Object:
        """Events of Kueue, the Job and its pods, for the message of a failed wait."""
        return {
            "workload": self.workload(name).get("status"),
            "job": self.job(job).get("status"),
            "pods": [
                (pod["metadata"]["name"], pod["spec"].get("nodeName"), pod.get("status"))
                for pod in self.pods(job)
            ],
        }

    def workload(self, name: str) -> Object:
        """What Kueue made of a Job, {} while it made nothing."""
        for row in self.api.list(API_VERSION, "Workload", self.jobs[name]):
            owners = row["metadata"].get("ownerReferences") or ()
            if any(owner["name"] == name for owner in owners):
                return row
        return {}

    def condition(self, name: str, kind: str) -> Mapping[str, Any]:
        """A condition of a Job's workload, {} where it has none."""
        rows = (self.workload(name).get("status") or {}).get("conditions") or ()
        return next((row for row in rows if row["type"] == kind), {})

    def admitted(self, name: str) -> bool:
        """Whether Kueue lets a Job run now."""
        return self.condition(name, "Admitted").get("status") == "True"

    def evictions(self, name: str) -> dict[str, int]:
        """How often a Job lost its admission, by reason."""
        stats = (self.workload(name).get("status") or {}).get("schedulingStats") or {}
        return {row["reason"]: row["count"] for row in stats.get("evictions") or ()}

    def age(self, name: str, kind: str, seconds: float) -> None:
        """Let a condition of a Job's workload be as old as that."""
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)

        def older(status: Object) -> None:
            row = next(row for row in status["conditions"] if row["type"] == kind)
            row["lastTransitionTime"] = f"{past:%Y-%m-%dT%H:%M:%SZ}"

        eventually(lambda: self.change(name, older), f"{name} is older")

    def again(self, name: str) -> None:
        """Wait until an evicted Job is admitted again; the time until its next try is cut short."""

        def admitted() -> bool:
            if self.admitted(name) and self.condition(name, "Evicted").get("status") != "True":
                return True
            self.change(name, lambda status: (status.get("requeueState") or {}).pop("requeueAt", None))
            return False

        eventually(admitted, lambda: self.workload(name))

    def change(self, name: str, change: Callable[[Object], object]) -> bool:
        """Change the status of a Job's workload; False when Kueue wrote it meanwhile."""
        workload = self.workload(name)
        change(workload["status"])
        try:
            self.api.replace(workload, subresource="status")
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            return False
        return True

    def refusal(self, name: str) -> str:
        """Why a Job waits, once Kueue has reported it."""
        eventually(lambda: self.condition(name, "QuotaReserved").get("status") == "False", f"{name} waits")
        return str(self.condition(name, "QuotaReserved")["message"])

    def runs(self, *names: str) -> None:
        """Wait until Jobs are admitted."""
        eventually(
            lambda: all(self.admitted(name) for name in names),
            lambda: [self.workload(name) for name in names if not self.admitted(name)],
        )

    def flavor(self, name: str) -> str:
        """The flavor that a Job was given, once it runs."""
        self.runs(name)
        assigned = self.workload(name)["status"]["admission"]["podSetAssignments"][0]["flavors"]
        (found,) = set(assigned.values())
        return str(found)

    def nodes(self, name: str, count: int = 1) -> list[str]:
        """The nodes of a Job's pods, once `count` of them run."""

        def running() -> list[str]:
            pods = [pod for pod in self.pods(name) if (pod.get("status") or {}).get("phase") == "Running"]
            return [pod["spec"]["nodeName"] for pod in pods] if len(pods) == count else []

        def seen() -> str:
            return f"{count} pods of {name} run; there are {[_state(pod) for pod in self.pods(name)]}"

        return sorted(eventually(running, seen))

    def finish(self, name: str) -> None:
        """Remove a Job."""
        self.api.delete("batch/v1", "Job", name, self.jobs.pop(name), propagation="Background")


def _state(pod: Object) -> tuple[str, str, str]:
    status = pod.get("status") or {}
    said = [str(row.get("message")) for row in status.get("conditions") or () if row["status"] == "False"]
    return str(pod["spec"].get("nodeName")), str(status.get("phase")), "; ".join(said)


@contextmanager
def queues(
    api: KubernetesApi,
    flavors: Sequence[FlavorArgs],
    teams: Sequence[TeamArgs],
    gate: GateArgs = NO_GATE,
    *,
    fits: bool = False,
    stays: bool = False,
    ending: bool = False,
    suffix: str = "",
    sends: SendsArgs | None = None,
) -> Iterator[Lab]:
    """The component `Queueing` in the cluster; teams get a suffix, so only clusters with the same share them.

    With `stays`, nothing is removed at the end. API servers learn of a policy a moment after it was made or
    deleted: that which is another one for other flavors is there only where a test asks for it.
    """
    suffix = suffix or uuid.uuid4().hex[:6]
    given: Queues = {"flavors": flavors, "teams": teams, "gate": gate, "ending": ending, "sends": sends}
    bodies = generated(given, suffix, image=IMAGE, fits=fits)
    lab = Lab(api, {team["name"]: team_namespace(f"{team['name']} {suffix}") for team in teams})
    try:
        applied(api, bodies)
        yield lab
    finally:
        if not stays:
            _end_runs(api, [*lab.namespaces.values()])
            _remove(api, bodies)


def applied(api: KubernetesApi, bodies: Sequence[Object]) -> None:
    """Apply the objects of queues, and wait until jobs can be submitted."""
    for body in bodies:
        api.apply(body)
    # A job gets its queue when it is made: one that came before its LocalQueue would wait without end.
    made = [body for body in bodies if body["kind"] in ("ClusterQueue", "LocalQueue")]
    eventually(lambda: all(_active(api, body) for body in made), "queues are active")
    quotas = [body for body in bodies if body["kind"] == "ResourceQuota"]
    eventually(lambda: all(counted(api, body) for body in quotas), "quotas are counted")


def _active(api: KubernetesApi, queue: Object) -> bool:
    metadata = queue["metadata"]
    found = api.get(API_VERSION, queue["kind"], metadata["name"], metadata.get("namespace", ""))
    rows = (found.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Active" and row["status"] == "True" for row in rows)


def _end_runs(api: KubernetesApi, namespaces: Sequence[str]) -> None:
    """End all runs, and wait for their pods: a queue stays while it has jobs, a pod takes room on a new node
    of the name of its old one.
    """
    for namespace in namespaces:
        for kind in (("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "Job")):
            for run in api.list(*kind, namespace):
                api.delete(*kind, run["metadata"]["name"], namespace, propagation="Background")
    eventually(lambda: not any(api.list("v1", "Pod", one) for one in namespaces), "no pod is left")


def _remove(api: KubernetesApi, bodies: Sequence[Object]) -> None:
    """Delete all of them, and wait for what other labs have too.

    Namespaces of teams have names of their own, and take their time; the gate's is shared, and stays.
    """
    staying = [body for body in bodies if body["metadata"]["name"] == GATE_NAMESPACE]
    shared = [
        body for body in reversed(bodies)
        if body not in staying and body["metadata"].get("namespace", GATE_NAMESPACE) == GATE_NAMESPACE
    ]  # fmt: skip
    for body in shared:
        metadata = body["metadata"]
        at = body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", "")
        api.delete(*at, propagation="Background")
    gone(api, [body for body in shared if body["kind"] != "Namespace"])


@contextmanager
def machines(
    api: KubernetesApi, flavors: Sequence[FlavorArgs], types: Mapping[str, str], *, block: int = 0
) -> Iterator[None]:
    """The nodes of pools, all of them up: labelled and tainted as the cloud's node groups do it."""
    bodies = []
    for row in flavors:
        labels, taints = dict(row["node_labels"]), [GPU_TAINT] if row["gpus"] else ()
        pool = KwokPool(
            row["name"], types[row["name"]], row["max_nodes"], labels=labels, taints=taints, block=block
        )
        for body in pool_nodes(pool):
            given = body["status"]["capacity"] | ({GPU: str(row["gpus"])} if row.get("shared") else {})
            amounts = {key: amount for key, amount in given.items() if key != GPU or taints}
            bodies.append({**body, "status": {"capacity": amounts, "allocatable": amounts}})
    try:
        for body in bodies:
            api.create(body)
        yield
    finally:
        for body in bodies:
            api.delete("v1", "Node", body["metadata"]["name"], propagation="Background")


@contextmanager
def lost(api: KubernetesApi, node: str) -> Iterator[None]:
    """A node that sends no heartbeats any more, and is gone at the end.

    Another holder has its lease, so KWOK does not renew it (pkg/kwok/controllers/node_lease_controller.go,
    `tryAcquireOrRenew`, v0.8.0).
    """
    lease = ("coordination.k8s.io/v1", "Lease", node)
    eventually(lambda: api.find(*lease, "kube-node-lease"), f"{node} has a lease")
    other = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
    api.patch(*lease, {"spec": other}, "kube-node-lease")
    try:
        yield
    finally:
        # No kubelet reports their end.
        for pod in api.list("v1", "Pod", fields=f"spec.nodeName={node}"):
            metadata = pod["metadata"]
            url = api.resource("v1", "Pod").url(metadata["namespace"], metadata["name"])
            api.request("DELETE", url, {"gracePeriodSeconds": 0})
        api.delete("v1", "Node", node)
        api.delete(*lease, "kube-node-lease")
