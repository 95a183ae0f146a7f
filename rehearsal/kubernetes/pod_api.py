"""API server for pods of emulated clusters, over TLS.

Pods read Jobs, pods and Workloads, read and write Secrets and CustomResourceDefinitions, and create objects
of custom kinds without a namespace as a dry run. A pod authenticates with the token of its service account
and has the rights of its roles. Errors are `Status` objects.
"""

import json
import re
import secrets
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rehearsal.controlplane.certificates import Authority
from rehearsal.core.model import Record, RefusalError
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer
from rehearsal.kubernetes import pod_definitions, pod_secrets
from rehearsal.kubernetes.api import authorization
from rehearsal.kubernetes.clusters import KubeCluster, namespace_of
from rehearsal.kubernetes.controllers.kubelet import Kubelet
from rehearsal.kubernetes.rules import admission
from rehearsal.workloads.job import JobController
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.pod_status import pod_status
from rehearsal.workloads.translate import Pod

Object = Mapping[str, Any]

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?"
)
_VERBS = {"POST": "create", "PUT": "update"}
_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "kueue.x-k8s.io/job-uid"
_JOB = "kubernetes:batch/v1:Job"


class PodApi:
    """The server, running in threads of this process from the first use until `stop`."""

    def __init__(self, home: Path, kubelet: Kubelet) -> None:
        self._home, self._kubelet = home, kubelet
        self._accounts: dict[str, tuple[KubeCluster, str, str]] = {}  # token -> cluster, namespace, account
        self._tokens: dict[tuple[str, str, str], str] = {}
        self._server: LoopbackServer | None = None
        self._authority: Authority | None = None
        self._lock = threading.Lock()

    def environment(self) -> Mapping[str, str]:
        """Variables with the server's address."""
        port = str(self._started().port)
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}

    def token(self, cluster: KubeCluster, pod: Pod) -> bytes:
        """Token of a pod's service account."""
        account = (cluster.scope, pod.namespace, pod.service_account)
        with self._lock:
            token = self._tokens.setdefault(account, secrets.token_urlsafe(32))
            self._accounts[token] = (cluster, pod.namespace, pod.service_account)
        return token.encode()

    @property
    def authority(self) -> bytes:
        """Certificate authority, as in the ConfigMap kube-root-ca.crt of every namespace."""
        self._started()
        assert self._authority
        return self._authority.pem

    def stop(self) -> None:
        """Close the port."""
        if self._server:
            self._server.stop()

    def answer(
        self, token: str, target: str, new: Object | None = None, method: str = "GET"
    ) -> tuple[int, Object]:
        """Status and body for a GET, or for a POST or PUT of the object `new`."""
        known = self._accounts.get(token)
        if known is None:
            return 401, _status(401, "Unauthorized", "Unauthorized")
        url = urlsplit(target)
        found = _PATH.fullmatch(url.path)
        if found is None:
            return 404, _status(404, "NotFound", "the server could not find the requested resource")
        cluster, home, account = known
        group, namespace, resource = found["group"] or "", found["namespace"] or "", found["resource"]
        asked, name = parse_qs(url.query), found["name"] or ""
        watches = new is None and asked.get("watch", ["false"])[0] in ("true", "1")
        verb = _VERBS.get(method) or ("watch" if watches else "get" if name else "list")
        if not authorization.may(cluster, (home, account), verb, (group, resource, namespace), name):
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            what = f'resource "{resource}" in API group "{group}" {where}'
            user = f"system:serviceaccount:{home}:{account}"
            return 403, _status(
                403, "Forbidden", f'{resource} is forbidden: User "{user}" cannot {verb} {what}'
            )
        if new is None:  # a list in answer to a watch would be read as a change
            labels = _labels(url.query)
            return (
                _unknown(f"watching {resource}")
                if watches
                else self._read(cluster, namespace, resource, name, labels)
            )
        if asked.get("dryRun") == ["All"] and not namespace:
            return _would_be(cluster, group, found["version"], resource, new)
        return _write(cluster, namespace, resource, name, new)

    def _read(
        self, cluster: KubeCluster, namespace: str, resource: str, name: str, labels: Mapping[str, str]
    ) -> tuple[int, Object]:
        if resource == "jobs" and name:
            return self._job(cluster, namespace, name)
        if resource == "secrets" and name:
            return _secret(cluster, namespace, name, None)
        if resource == pod_definitions.RESOURCE and name:
            found = pod_definitions.get(cluster, name)
            missing = f'{resource} "{name}" not found'
            return (200, found) if found else (404, _status(404, "NotFound", missing))
        if resource == "pods" and not name:
            pods = self._pods(cluster, namespace, labels.get(_JOB_NAME, ""))
            return 200, {"kind": "PodList", "items": list(pods)}
        if resource == "workloads" and not name:
            workloads = self._workloads(cluster, namespace, labels.get(_JOB_UID, ""))
            return 200, {"kind": "WorkloadList", "items": list(workloads)}
        return _unknown(f"reading {resource}")

    # --------------------------------------------------------------------------------------------------

    def _started(self) -> LoopbackServer:
        with self._lock:
            if self._server is None:
                self._authority = Authority(self._home / "pod-api", "kubernetes")
                pair = self._authority.sign("pod-api")
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(pair.certificate, pair.key)
                self._server = LoopbackServer(_Handler, tls=context, pods=self)
            return self._server

    def _job(self, cluster: KubeCluster, namespace: str, name: str) -> tuple[int, Object]:
        record = cluster.get("Job", namespace, name)
        if record is None:
            return 404, _status(404, "NotFound", f'jobs.batch "{name}" not found')
        run = self._run(cluster, record)
        body = {**record.outputs, "spec": {**(record.outputs.get("spec") or {}), "suspend": False}}
        if run:
            body["spec"]["suspend"], body["status"] = bool(run.held), run.status()
        return 200, body

    def _pods(self, cluster: KubeCluster, namespace: str, job: str) -> Iterator[Object]:
        for runner in self._kubelet.pods(cluster.scope):
            pod = runner.pod
            if pod.namespace == namespace and (not job or pod.labels.get(_JOB_NAME) == job):
                yield _pod(runner)

    def _workloads(self, cluster: KubeCluster, namespace: str, uid: str) -> Iterator[Object]:
        for record in cluster.all(_JOB):
            run = self._run(cluster, record)
            metadata = record.outputs.get("metadata") or {}
            if run and namespace_of(record.outputs) == namespace and metadata.get("uid") == uid:
                reserved = {"type": "QuotaReserved", "status": "False" if run.held else "True"}
                condition = (
                    {"reason": "Pending", "message": run.held} if run.held else {"reason": "QuotaReserved"}
                )
                yield {
                    "metadata": {"name": f"job-{record.name}", "namespace": namespace},
                    "status": {"conditions": [{**reserved, **condition}]},
                }

    def _run(self, cluster: KubeCluster, record: Record) -> JobController | None:
        found = self._kubelet.find(cluster, "Job", record.id)
        return found if isinstance(found, JobController) else None


def _would_be(
    cluster: KubeCluster, group: str, version: str, resource: str, new: Object
) -> tuple[int, Object]:
    """Response to a dry run: the rules' result for a new object, which is not stored."""
    kinds = [crd.kind for crd in cluster.crds() if (crd.group, crd.plural) == (group, resource)]
    if not kinds:
        return 404, _status(404, "NotFound", "the server could not find the requested resource")
    try:
        admission.admit(f"kubernetes:{group}/{version}:{kinds[0]}", dict(new), cluster, custom=True)
    except RefusalError as error:
        return 422, _status(422, error.code, error.message)
    name = str((new.get("metadata") or {}).get("name"))
    if cluster.exists(kinds[0], "", name):
        return 409, _status(409, "AlreadyExists", f'{resource}.{group} "{name}" already exists')
    return 201, new


def _secret(cluster: KubeCluster, namespace: str, name: str, new: Object | None) -> tuple[int, Object]:
    """Read, replace (with a name) or create a Secret."""
    if new is not None and not name:
        made = pod_secrets.create(cluster, namespace, new)
        taken = f'secrets "{new["metadata"]["name"]}" already exists'
        return (201, made) if made else (409, _status(409, "AlreadyExists", taken))
    found = (
        pod_secrets.get(cluster, namespace, name)
        if new is None
        else pod_secrets.replace(cluster, namespace, name, new)
    )
    return (200, found) if found else (404, _status(404, "NotFound", f'secrets "{name}" not found'))


def _write(cluster: KubeCluster, namespace: str, resource: str, name: str, new: Object) -> tuple[int, Object]:
    if resource == "secrets" and namespace:
        return _secret(cluster, namespace, name, new)
    if resource == pod_definitions.RESOURCE:
        return _definition(cluster, new)
    return _unknown(f"creating {resource}")


def _definition(cluster: KubeCluster, new: Object) -> tuple[int, Object]:
    try:
        return 201, pod_definitions.write(cluster, new)
    except RefusalError as error:
        return 422, _status(422, error.code, error.message)


def _unknown(what: str) -> tuple[int, Object]:
    return 501, _status(501, "NotImplemented", f"{what} is not emulated for pods")


def _labels(query: str) -> dict[str, str]:
    """Labels of a query's selector; only equality is supported."""
    selector = parse_qs(query).get("labelSelector", [""])[0]
    return dict(pair.split("=", 1) for pair in selector.split(",") if "=" in pair)


def _pod(runner: PodRunner) -> Object:
    pod, state = runner.pod, runner.state
    scheduled: dict[str, Any] = {"type": "PodScheduled", "status": "True"}
    if state.reason == "Unschedulable":
        refused = {"status": "False", "reason": state.reason, "message": state.message}
        status: Object = {"phase": state.phase, "conditions": [{**scheduled, **refused}]}
    else:
        running = pod_status(pod.spec["containers"], state)
        status = {**running, "conditions": [scheduled, *running["conditions"]]}
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
        },
        "status": status,
    }


def _status(code: int, reason: str, message: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    pods: PodApi

    def do_GET(self) -> None:
        """One read by a pod."""
        self._answer(None)

    def do_POST(self) -> None:
        """One object from a pod."""
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    do_PUT = do_POST  # noqa: N815 - as the base class calls its methods

    def _answer(self, new: Object | None) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        status, body = self.pods.answer(token, self.path, new, self.command)
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
