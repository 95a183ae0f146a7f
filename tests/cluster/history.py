"""Finished jobs, written into etcd: through the API server, ten thousand take half an hour."""

import base64
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from rehearsal.controlplane.api import KubernetesApi, Object

_SOON_S, _AT_ONCE = 60.0, 4
# Where the API server keeps a kind.
_KEPT = {"Job": "jobs", "Pod": "pods", "Workload": "kueue.x-k8s.io/workloads"}
_OWN = ("managedFields", "resourceVersion")


def copies(
    api: KubernetesApi, namespace: str, job: str, count: int, prefix: str = "past"
) -> Iterator[tuple[str, Object]]:
    """Keys and objects of etcd: copies of a finished Job, with its pods and its Workload."""
    uid = api.get("batch/v1", "Job", job, namespace)["metadata"]["uid"]
    found = [
        body
        for kind in (("batch/v1", "Job"), ("v1", "Pod"), ("kueue.x-k8s.io/v1beta2", "Workload"))
        for body in api.list(*kind, namespace)
        if uid in json.dumps(body["metadata"])
    ]
    assert {body["kind"] for body in found} == {*_KEPT}, found
    for body in found:
        body["metadata"] = {key: value for key, value in body["metadata"].items() if key not in _OWN}
    text = json.dumps(found)
    uids = {body["metadata"]["uid"] for body in found}
    for index in range(count):
        copy = text.replace(job, f"{prefix}-{index}")
        for one in uids:
            copy = copy.replace(one, str(uuid.uuid4()))
        for body in json.loads(copy):
            yield f"/registry/{_KEPT[body['kind']]}/{namespace}/{body['metadata']['name']}", body


def store(home: Path, authority: Path, objects: Iterable[tuple[str, Object]]) -> None:
    """Write objects into the etcd of the control plane in `home`, as its API server does.

    Each has a revision of its own: the API server's cache of watches passes over others of one revision.
    """
    log = (home / "etcd.log").read_text(encoding="utf-8")
    address = re.findall(r'listen-client-urls":\["(https://[^"]+)"', log)[-1]
    pair = home / "certificates" / "kube-apiserver-etcd-client"
    with requests.Session() as link, ThreadPoolExecutor(_AT_ONCE) as threads:
        # A bundle of the environment would take precedence.
        link.trust_env = False
        link.verify, link.cert = str(authority), (f"{pair}.crt", f"{pair}.key")

        def put(one: tuple[str, Object]) -> None:
            body = {"key": _base64(one[0]), "value": _base64(json.dumps(one[1]))}
            link.post(f"{address}/v3/kv/put", json=body, timeout=_SOON_S).raise_for_status()

        # The collector of garbage deletes what it sees before its owner.
        rows = [*objects]
        for owned in (False, True):
            batch = [one for one in rows if ("ownerReferences" in one[1]["metadata"]) is owned]
            list(threads.map(put, batch))


def seconds(began: float) -> int:
    """Whole seconds since a moment of the monotonic clock."""
    return round(time.monotonic() - began)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
