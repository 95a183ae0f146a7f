"""Shared fixtures: a rehearsal with one EKS cluster, and calls as the engine makes them."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from rehearsal.core.model import Call, Properties, ProviderInstance, Record, RefusalError
from rehearsal.core.state import State
from rehearsal.kubernetes.cloud import KubernetesCloud

ENDPOINT = "https://ABCDEF0123.gr7.eu-central-1.eks.amazonaws.com"
ARN = "arn:aws:eks:eu-central-1:123456789012:cluster/dev"
ACCOUNT = "123456789012"

NAMESPACE = "kubernetes:core/v1:Namespace"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SECRET = "kubernetes:core/v1:Secret"
SERVICE = "kubernetes:core/v1:Service"
ACCOUNT_KIND = "kubernetes:core/v1:ServiceAccount"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
JOB = "kubernetes:batch/v1:Job"
RELEASE = "kubernetes:helm.sh/v3:Release"


def kubeconfig(endpoint: str = ENDPOINT) -> str:
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": endpoint}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    })  # fmt: skip


def living() -> set[int]:
    """Living processes below this one, except those that read the SDK."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE and "sdk_types" not in " ".join(process.cmdline()):
                found.add(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


@dataclass
class Rehearsed:
    """One rehearsal home with its kubernetes cloud."""

    state: State
    home: Path
    cloud: KubernetesCloud
    config: dict[str, Any] = field(default_factory=lambda: {"kubeconfig": kubeconfig()})
    log: list[tuple[str, str]] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)
    others: set[int] = field(default_factory=living)

    def processes(self) -> set[int]:
        """Processes of this rehearsal; the control plane of other tests may run beside it."""
        return living() - self.others

    def call(self, token: str, name: str, timeout_s: float | None = 20) -> Call:
        return Call(
            instance=ProviderInstance("kubernetes", self.config),
            type=token,
            urn=f"urn:pulumi:dev::app::{token}::{name}",
            cancelled=self.cancelled,
            log=lambda severity, message: self.log.append((severity, message)),
            timeout_s=timeout_s,
            random_seed=name.encode(),
        )

    def create(
        self, token: str, inputs: Properties, name: str = "r", *, timeout_s: float | None = 20
    ) -> tuple[str, Properties]:
        """Check, then create, as the engine does. Raises RefusalError."""
        call = self.call(token, name, timeout_s)
        checked, failures = self.cloud.check(call, None, inputs)
        if failures:
            text = "; ".join(f"{failure.property}: {failure.reason}" for failure in failures)
            raise RefusalError("Invalid", text)
        return self.cloud.create(call, checked, preview=False)

    def aws(self, type: str, id: str, inputs: Properties, outputs: Properties) -> Record:
        return self.state.insert(
            package="aws", type=type, scope=f"{ACCOUNT}/eu-central-1", id=id, urn=f"urn::{id}", name=id,
            inputs=inputs, outputs=outputs,
        )  # fmt: skip

    def namespace(self, name: str = "lab") -> None:
        self.create(NAMESPACE, {"metadata": {"name": name}}, name)

    def config_map(self, name: str, files: dict[str, str], namespace: str = "lab") -> None:
        self.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": namespace}, "data": files}, name)

    def node_group(self, name: str = "system", machine: str = "m6i.xlarge", **inputs: Any) -> Record:
        scaling = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
        given = {
            "clusterName": "dev", "nodeGroupName": name, "instanceTypes": [machine],
            "scalingConfig": scaling, **inputs,
        }  # fmt: skip
        return self.aws("aws:eks/nodeGroup:NodeGroup", name, given, {"nodeGroupName": name})

    def fresh_cloud(self) -> KubernetesCloud:
        """The cloud as a restarted daemon builds it."""
        self.cloud = KubernetesCloud(self.state, self.cloud._schemas, self.home)
        return self.cloud


def script_pod(script: str = "job", **spec: Any) -> Properties:
    """A pod specification that runs /code/main.py out of a ConfigMap."""
    container = {
        "name": "main", "image": "python:3.11", "command": ["python", "/code/main.py"],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}], **spec.pop("container", {}),
    }  # fmt: skip
    return {
        "containers": [container],
        "volumes": [{"name": "code", "configMap": {"name": script}}],
        **spec,
    }


def job(name: str, pod: Properties, namespace: str = "lab", **spec: Any) -> Properties:
    """A Job's inputs."""
    annotations = spec.pop("annotations", None)
    metadata = {"name": name, "namespace": namespace, **({"annotations": annotations} if annotations else {})}
    return {
        "metadata": metadata,
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", **pod}}, **spec},
    }


def deployment(name: str, pod: Properties, namespace: str = "lab", **spec: Any) -> Properties:
    """A Deployment's inputs."""
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **spec,
        },
    }


WEB = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ["HOSTNAME"].encode())
    def log_message(self, *_): pass
print("serving", flush=True)
http.server.HTTPServer((os.environ["HOST"], 8080), Handler).serve_forever()
"""
PROBE = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1}
POD_IP = {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def web(name: str = "web", **spec: Any) -> Properties:
    container = {"ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": PROBE, "env": [POD_IP]}
    return deployment(name, script_pod(name, container=container), **spec)
