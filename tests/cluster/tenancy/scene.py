"""Two teams of a stack, what a member of the first made, and what the stack gave both."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from components.kubernetes.teams.checkpoints import TeamCheckpoints
from components.kubernetes.training.trainer import runtimes
from policies.admission.manifests import Action, manifests
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster import manifests as composed
from tests.cluster.queues.lab import IMAGE
from tests.cluster.queues.tenants import two_teams
from tests.cluster.waiting import eventually, gone
from tests.components.graph import deploy_graph

_Any = TypeVar("_Any")
_PRIORITY: Object = {
    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "above-others"},
    "value": 1000,
}  # fmt: skip
HUGE, SMALL = {"cpu": "900", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}


@dataclass
class Scene:
    """The cluster as an administrator and as the member see it; `names` are those of objects that stand."""

    api: KubernetesApi
    member: KubernetesApi
    names: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> str:
        """The member's namespace."""
        return self.names["own"]

    def filled(self, made: _Any) -> _Any:
        """A copy with every `{name}` in its texts replaced."""
        text = json.dumps(made)
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        found: _Any = json.loads(text)
        return found


def pod_spec(amounts: Mapping[str, str] = SMALL, **more: Any) -> Object:
    """A pod of one container, with requests equal to limits."""
    resources = {"requests": dict(amounts), "limits": dict(amounts)}
    container = {"name": "main", "image": IMAGE, "resources": resources}
    return {"restartPolicy": "Never", "containers": [container], **more}


def job_spec(amounts: Mapping[str, str] = SMALL, **pod: Any) -> Object:
    """A Job with a deadline."""
    kept = {
        "metadata": {"annotations": {"trainstack.dev/seconds": "3600s"}},
        "spec": pod_spec(amounts, **pod),
    }
    return {"backoffLimit": 0, "activeDeadlineSeconds": 3600, "template": kept}


def labelled(labels: Object) -> Object:
    """A Job whose pods have labels."""
    return {**job_spec(), "template": {"metadata": {"labels": labels}, "spec": pod_spec()}}


def lasting(**more: Any) -> Object:
    """The part of a Deployment that its kinds have in common; `more` is its pods' metadata."""
    template = {"metadata": {"labels": {"app": "own"}, **more}, "spec": pod_spec(restartPolicy="Always")}
    return {"replicas": 1, "selector": {"matchLabels": {"app": "own"}}, "template": template}


def job_set(job: Object, **more: Any) -> Object:
    """Jobs of a JobSet."""
    return {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {**more, "spec": job}}]}


@contextmanager
def scene(plane: ControlPlane, api: KubernetesApi, actions: Sequence[Action]) -> Iterator[Scene]:
    """The scene, in an environment whose admission policies deny or warn."""
    with two_teams(plane, api, "a group") as tenants:
        stand = Scene(api, tenants.research, {"own": tenants.own, "other": tenants.other})
        offer: Any = {"cpu": 1, "memory_gib": 1, "gpus": 0}
        stack = (_PRIORITY, *runtimes({"cpu": offer}, IMAGE), *manifests(actions=actions))
        made = [api.create(each) for each in stack]
        try:
            if "Deny" in actions:
                eventually(partial(_denied, stand), "the rules hold")
            _given(stand)
            _made(stand)
            yield stand
        finally:
            for version, kind, name in (
                ("apps/v1", "Deployment", "notebook"),
                ("v1", "Pod", "gated"),
            ):
                api.delete(version, kind, name, stand.own, propagation="Background")
            for each in reversed(made):
                api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"])
            gone(api, made)


def _denied(stand: Scene) -> bool:
    """Whether a Job without a deadline is."""
    spec = {"template": job_spec()["template"]}
    metadata = {"name": "endless", "namespace": stand.own}
    try:
        stand.api.create(
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}, dry_run=True
        )
    except ApiError as error:
        return "mls-k8s-06" in str(error)
    return False


def _given(stand: Scene) -> None:
    """The role with which pods of the team report checkpoints, and the book of its hours."""

    def program() -> dict[str, Any]:
        TeamCheckpoints("given", {
            "namespace": stand.own, "uri": "s3://b/p", "interval_s": 60, "keep_last": 1,
            "keep_every_hours": None,
        })  # fmt: skip
        return {}

    for each in composed.manifests(deploy_graph(program)):
        stand.api.create(each)
    book = {"name": "gpu-ledger", "namespace": stand.own, "labels": {"trainstack.dev/given": "yes"}}
    stand.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": book, "data": {"book.json": "{}"}})


def _made(stand: Scene) -> None:
    """Objects of the member: running, waiting, and such as serve."""
    big = job_spec(HUGE)
    for kind, version, name, spec in (
        ("Pod", "v1", "gated", pod_spec(HUGE)),
        ("Job", "batch/v1", "waiting", big),
        ("Job", "batch/v1", "running", job_spec()),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "waiting-set", job_set(big)),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "set", job_set(job_spec())),
        ("Deployment", "apps/v1", "notebook", lasting()),
        ("Service", "v1", "served", {"selector": {"app": "own"}, "ports": [{"port": 80}]}),
    ):
        metadata = {"name": name, "namespace": stand.own}
        stand.member.create({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    for key, labels in {
        "job_pod": "batch.kubernetes.io/job-name=running",
        "set_pod": "jobset.sigs.k8s.io/jobset-name=set",
        "notebook_pod": "app=own",
    }.items():
        running = partial(_running, stand, labels)
        stand.names[key] = eventually(running, f"a pod of {labels} runs")["metadata"]["name"]
    stand.names["job_uid"] = stand.api.get("batch/v1", "Job", "running", stand.own)["metadata"]["uid"]
    workloads = stand.api.list("kueue.x-k8s.io/v1beta2", "Workload", stand.own)
    stand.names["workload"] = workloads[0]["metadata"]["name"]


def _running(stand: Scene, labels: str) -> Object | None:
    pods = stand.api.list("v1", "Pod", stand.own, labels=labels)
    return next((pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"), None)
