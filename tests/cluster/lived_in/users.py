"""Jobs and other objects of three teams in a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.kubernetes.queueing.kueue import API_VERSION, GPU_TAINT, PRIORITY_LABEL, QUEUE_NAME_LABEL
from components.kubernetes.queueing.quotas import GPU
from components.kubernetes.queueing.tenancy import LEAST_REQUEST
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.lived_in.stack import KWOK_TAINT, ON_KWOK
from tests.cluster.waiting import eventually

RESEARCH, VISION, APPLIED = "team-research", "team-vision", "team-applied-ml"
TEAMS = (RESEARCH, VISION, APPLIED)
# Seconds that a KWOK pod goes on after SIGTERM (`rehearsal/controlplane/stages.yaml`).
IGNORES_SIGTERM = "trainstack.dev/stop-seconds"
SECONDS = "trainstack.dev/seconds"
# Writes a checkpoint when it is stopped: a file beside its home, so that a test can read it.
_CHECKPOINTING = """
import pathlib, signal, sys, time
def stop(*_):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
pathlib.Path(sys.argv[1]).write_text("started")
while True:
    time.sleep(0.1)
"""
Identity = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(frozen=True)
class Users:
    """Writes and reads what users have in the cluster."""

    api: KubernetesApi

    def job(
        self, namespace: str, name: str, *, pods: int = 1, requests: Mapping[str, str] | None = None,
        queue: str = "", priority: str = "", notes: Mapping[str, str] | None = None, grace_s: int = 30,
        claim: str = "",
    ) -> None:  # fmt: skip
        """Create a Job; a claim is mounted by its pods."""
        labels = {
            **({QUEUE_NAME_LABEL: queue} if queue else {}),
            **({PRIORITY_LABEL: priority} if priority else {}),
        }
        template = {
            "metadata": {"annotations": dict(notes or {})},
            "spec": {**_pod(requests, claim=claim), "terminationGracePeriodSeconds": grace_s},
        }
        self.api.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template},
            }
        )

    def finished(self, namespace: str, count: int) -> None:
        """Create old Jobs that end at once; they stay, for nothing deletes them."""
        for index in range(count):
            self.job(
                namespace, f"old-{index}", requests={**LEAST_REQUEST, "memory": "16Mi"}, notes={SECONDS: "0s"}
            )

    def notebook(self, namespace: str, name: str, claim: str = "") -> None:
        """Create a Pod of its own, without a Job."""
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
        self.api.create({**body, "spec": {**_pod({"cpu": "1", "memory": "1Gi", GPU: "1"}, claim=claim)}})

    def job_set(self, namespace: str, name: str) -> None:
        """Create a JobSet of two Jobs."""
        template = {"spec": {"backoffLimit": 0, "template": {"spec": _pod({"cpu": "1", "memory": "1Gi"})}}}
        self.api.create(
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": template}]},
            }
        )

    def checkpointing(self, namespace: str, name: str, file: str) -> None:
        """Create a Job whose pod is a process of this machine, and saves to `file` on SIGTERM."""
        about = {"name": name, "namespace": namespace}
        code = {"main.py": _CHECKPOINTING}
        self.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": code})
        container = {
            **_pod({"cpu": "1", "memory": "1Gi"})["containers"][0],
            "command": ["python", "/code/main.py", file],
            "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        }
        volumes = [{"name": "code", "configMap": {"name": name}}]
        pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
        spec = {"backoffLimit": 0, "template": {"spec": pod}}
        self.api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec})

    def forgotten(self, namespace: str) -> None:
        """Create what no controller looks after: a Service, and a ConfigMap with a finalizer."""
        service = {"ports": [{"port": 80}], "selector": {"app": "gone"}}
        about = {"name": "forgotten", "namespace": namespace}
        self.api.create({"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": service})
        held = {**about, "finalizers": ["example.com/unknown"]}
        self.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})

    def leave(self) -> None:
        """Delete all jobs, and what was forgotten, of namespaces that exist."""
        for namespace in TEAMS:
            for kind in (("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "Job"), ("v1", "Pod")):
                for one in self.api.list(*kind, namespace):
                    self.api.delete(*kind, one["metadata"]["name"], namespace, propagation="Background")
            if self.api.find("v1", "ConfigMap", "forgotten", namespace):
                free: Object = {"metadata": {"finalizers": None}}
                self.api.patch("v1", "ConfigMap", "forgotten", free, namespace)
            for kind in (("v1", "ConfigMap"), ("v1", "Service")):
                self.api.delete(*kind, "forgotten", namespace)
        eventually(lambda: not self.states(), self.states)

    def states(self) -> dict[Identity, str]:
        """State of each job by its Workload: `running`, `waiting`, `inactive` or `finished`."""
        return {
            (row["metadata"]["namespace"], _owner(row)): _state(row)
            for row in self.api.list(API_VERSION, "Workload")
        }

    def reach(self, wanted: Mapping[Identity, str]) -> None:
        """Wait for these states of these jobs."""

        def reached() -> bool:
            found = self.states()
            return all(found.get(job) == state for job, state in wanted.items())

        eventually(reached, lambda: {job: self.states().get(job) for job in wanted})

    def pods(self, namespaces: Sequence[str] = TEAMS) -> dict[str, str]:
        """Uid of each running pod that is not being deleted, by namespace and name: to find restarts."""
        return {
            f"{one}/{pod['metadata']['name']}": pod["metadata"]["uid"]
            for one in namespaces
            for pod in self.api.list("v1", "Pod", one, fields="status.phase=Running")
            if "deletionTimestamp" not in pod["metadata"]
        }


def _owner(workload: Object) -> str:
    owners = workload["metadata"].get("ownerReferences") or ({"name": workload["metadata"]["name"]},)
    return str(owners[0]["name"])


def _state(workload: Object) -> str:
    rows = (workload.get("status") or {}).get("conditions") or ()
    true = {row["type"] for row in rows if row["status"] == "True"}
    if "Finished" in true:
        return "finished"
    if not workload["spec"].get("active", True):
        return "inactive"
    return "running" if {"Admitted", "PodsReady"} <= true and "Evicted" not in true else "waiting"


def _pod(requests: Mapping[str, str] | None, *, claim: str = "") -> dict[str, Any]:
    asked = dict(requests or {"cpu": "1", "memory": "1Gi"})
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]} if claim else {}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "restartPolicy": "Never",
        "nodeSelector": dict(ON_KWOK),
        "tolerations": [
            {"key": KWOK_TAINT["key"], "operator": "Exists"},
            {"key": GPU_TAINT["key"], "operator": "Exists"},
        ],
        "containers": [
            {
                "name": "main",
                "image": "example.com/none:1",
                "resources": {"requests": asked, "limits": asked},
                **mounts,
            }
        ],
        "volumes": volumes,
    }
