"""Idle GPUs on a real control plane: a warning, then a stop; active pods and fresh checkpoints are left
alone.

The program runs as its pod does, with the rights that its component gives. Prometheus is a server that
answers in its form: no GPU is here to be measured.
"""

import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agents.idle_gpus.holders import INTERACTIVE, PURPOSE_LABEL, STOP_AT
from agents.shared.kueue import STOPPED_LABEL
from components.kubernetes.idle.idle_gpus import PROGRAM, IdleGpus, IdleGpusArgs
from components.kubernetes.teams.checkpoints import TeamCheckpoints
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.processes import free_ports
from smoke_training.checkpoint_policy import LAST
from smoke_training.runtime.announcement import AnnotationRefusedError, announce
from tests.agents.idle_gpus.recorded import answer, series
from tests.cluster.manifests import manifests
from tests.cluster.programs import started
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.waiting import eventually
from tests.components.graph import deploy_graph

L4 = flavor("l4", "g6.2xlarge", 6)
TEAM = "Vision"
RBAC = ("ClusterRole", "RoleBinding", "ServiceAccount", "Namespace")


@dataclass
class Prometheus:
    """Answers queries of a range; a pod that is not named did nothing."""

    namespace: str
    silent: bool = True
    busy: set[str] = field(default_factory=set)
    pods: tuple[str, ...] = ()
    address: str = ""

    def reply(self, query: Mapping[str, list[str]]) -> tuple[int, Object]:
        if self.silent:
            return 503, {"status": "error", "errorType": "unavailable"}
        begin, end, step = (float(query[name][0]) for name in ("start", "end", "step"))
        count = int((end - begin) // step) + 1
        found = (
            series(pod, [0.8 if pod in self.busy else 0.0] * count, end=end, namespace=self.namespace)
            for pod in self.pods
        )
        return 200, answer(*found)


@pytest.fixture(scope="module")
def lab(api: KubernetesApi) -> Iterator[Lab]:
    with machines(api, [L4], {"l4": "g6.2xlarge"}), queues(api, [L4], [{"name": TEAM, "weight": 1}]) as made:
        space = made.namespaces[TEAM]
        given: Any = {
            "namespace": space,
            "uri": "s3://checkpoints/teams/vision",
            "interval_s": 1800,
            "keep_last": 3,
            "keep_every_hours": None,
        }
        for body in manifests(deploy_graph(lambda: {"made": TeamCheckpoints("c", given).urn})):
            api.create(body)
        yield made


@pytest.fixture(scope="module")
def space(lab: Lab) -> str:
    return lab.namespaces[TEAM]


def session(name: str, space: str) -> Object:
    """A pod in which a person works, as a member writes it."""
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": {"kueue.x-k8s.io/queue-name": "default", PURPOSE_LABEL: INTERACTIVE},
        },
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "main",
                    "image": "example.com/none:1",
                    "resources": {"requests": limits, "limits": limits},
                }
            ],
        },
    }


def running(api: KubernetesApi, space: str, name: str) -> Object:
    return eventually(  # type: ignore[no-any-return]
        lambda: (
            (found := api.find("v1", "Pod", name, space))
            and (found.get("status") or {}).get("phase") == "Running"
            and found
        ),
        lambda: api.find("v1", "Pod", name, space),
    )


def notes(api: KubernetesApi, space: str, name: str) -> Mapping[str, str]:
    return api.get("v1", "Pod", name, space)["metadata"].get("annotations") or {}


@pytest.fixture
def inside(api: KubernetesApi, space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the kubelet puts into a pod: a token bound to it, and what it is called."""
    host, port = api.access.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)

    def folder(pod: Object, called: str = "", *, bound: bool = True) -> Path:
        name = pod["metadata"]["name"]
        made = tmp_path / f"{name}-{called}-{bound}"
        made.mkdir()
        (made / "ca.crt").write_bytes(api.access.authority.read_bytes())
        (made / "token").write_text(api.token(space, "default", pod=pod["metadata"] if bound else None))
        (made / "name").write_text(called or name)
        (made / "namespace").write_text(space)
        return made

    return folder


def test_a_pod_reports_its_checkpoint_and_can_change_nothing_else(
    api: KubernetesApi, space: str, inside: Any
) -> None:
    for name in ("says", "silent"):
        api.create(session(name, space))
    pod, other = running(api, space, "says"), running(api, space, "silent")
    try:
        eventually(partial(said, 1_795_639_199.0, inside(pod)), "the role is known")
        assert notes(api, space, "says")[LAST] == "2026-11-25T20:39:59Z"
        token = (inside(pod, called="says") / "token").read_text()
        # Policies are in force a moment after they are made.
        bad = partial(patched, api, space, "says", token, {"annotations": {LAST: "tomorrow"}})
        eventually(lambda: "write UTC" in bad(), bad)
        # Another pod, and an unknown token.
        for folder in (
            inside(pod, called="silent"),
            inside(other, called="says"),
            inside(other, bound=False),
        ):
            with pytest.raises(AnnotationRefusedError, match="trainstack-own-pod"):
                announce(0.0, folder)
        # The answer has the message of one of the policies that refuse: others are about names of Kueue.
        for change, words in (
            ({"annotations": {LAST: "tomorrow"}}, "write UTC"),
            ({"annotations": {STOP_AT: "never"}}, "only its annotation"),
            ({"labels": {"kueue.x-k8s.io/queue-name": "other"}}, "denied request"),
            ({"annotations": {LAST: None, "kueue.x-k8s.io/x": "y"}}, "denied request"),
        ):
            answered = patched(api, space, "says", token, change)
            assert words in answered, answered
        assert LAST not in notes(api, space, "silent")
    finally:
        for name in ("says", "silent"):
            api.delete("v1", "Pod", name, space)


def patched(api: KubernetesApi, space: str, name: str, token: str, metadata: Object) -> str:
    """What the API server says when a pod's token changes its metadata."""
    request = urllib.request.Request(
        f"{api.access.server}/api/v1/namespaces/{space}/pods/{name}",
        json.dumps({"metadata": metadata}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"},
        method="PATCH",
    )
    context = ssl.create_default_context(cafile=str(api.access.authority))
    try:
        with urllib.request.urlopen(request, context=context) as done:
            return str(done.read()[:100])
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.fixture
def prometheus(space: str) -> Iterator[Prometheus]:
    book = Prometheus(space)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urllib.parse.urlsplit(self.path)
            assert where.path == "/api/v1/query_range"
            status, body = book.reply(urllib.parse.parse_qs(where.query))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    book.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield book
    server.shutdown()
    server.server_close()


@pytest.fixture
def account(api: KubernetesApi, space: str) -> Iterator[str]:
    """The rights that the component gives, and a token of its account."""
    args: IdleGpusArgs = {
        "prometheus": "http://127.0.0.1:9090",
        "namespaces": [space],
        "interactive_pools": [],
        "minutes": 45,
        "grace_minutes": 15,
        "jobs": "stop",
        "interval_s": 1800,
        "image": IMAGE,
    }
    bodies = [
        body
        for body in manifests(deploy_graph(lambda: {"space": IdleGpus("i", args).namespace}))
        if body["kind"] in RBAC
    ]
    for body in bodies:
        api.apply(body)
    yield api.token("trainstack-idle", "idle")
    for body in reversed(bodies):
        api.delete(
            body["apiVersion"], body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", "")
        )


@pytest.fixture
def pods(api: KubernetesApi, lab: Lab, space: str, inside: Any, prometheus: Prometheus) -> Iterator[str]:
    """Three sessions and a job, each with a GPU: `works` computes, `fresh` has just written a checkpoint."""
    names = ("idle", "works", "fresh")
    for name in names:
        api.create(session(name, space))
    lab.submit(TEAM, "forgotten", gpus=1)
    (found,) = eventually(lambda: lab.pods("forgotten"), "the job runs")
    job_pod = found["metadata"]["name"]
    for name in (*names, job_pod):
        running(api, space, name)
    folder = inside(running(api, space, "fresh"))
    eventually(partial(said, time.time(), folder), "the role is known")
    prometheus.pods, prometheus.busy = (*names, job_pod), {"works"}
    yield job_pod
    for name in names:
        if api.find("v1", "Pod", name, space):
            api.delete("v1", "Pod", name, space)


def said(at: float, folder: Path) -> bool:
    """Whether the API server takes the announcement; it learns of roles and policies a moment after them."""
    try:
        return announce(at, folder)
    except AnnotationRefusedError:
        return False


@pytest.fixture
def metrics(
    lab: Lab, prometheus: Prometheus, account: str, pods: str, tmp_path: Path
) -> Iterator[Callable[[], str]]:
    """The program runs, for a window of 45 minutes and a grace of three seconds; what its metrics say."""
    (port,) = free_ports(1)
    given = {
        "prometheus": prometheus.address, "namespaces": json.dumps([lab.namespaces[TEAM]]),
        "interactive-pools": "[]", "minutes": 45, "grace-minutes": 0.05, "jobs": "stop",
        "interval-s": 1800, "startup-s": 0, "every-s": 0.5, "port": port,
    }  # fmt: skip
    program = started(PROGRAM, given, lab.api.access, account, tmp_path)
    yield partial(read, f"http://127.0.0.1:{port}/metrics")
    program.terminate()
    _, errors = program.communicate(timeout=20)
    assert "Traceback" not in errors, errors


def test_idle_gpus_get_a_warning_then_a_stop_and_nothing_without_metrics(
    api: KubernetesApi, lab: Lab, prometheus: Prometheus, pods: str, metrics: Callable[[], str]
) -> None:
    space = lab.namespaces[TEAM]
    eventually(lambda: "trainstack_idle_unknown 3" in metrics(), metrics)
    assert "trainstack_idle_blind 1" in metrics()
    assert all(STOP_AT not in notes(api, space, name) for name in prometheus.pods)
    prometheus.silent = False
    eventually(lambda: events(api, space, "GpusIdle") >= {"idle", pods}, lambda: events(api, space, ""))
    eventually(lambda: api.find("v1", "Pod", "idle", space) is None, "the session is stopped")
    eventually(
        lambda: lab.condition("forgotten", "Evicted").get("reason") == "Deactivated", "the job is stopped"
    )
    eventually(lambda: lab.job("forgotten")["spec"]["suspend"] is True, "and waits")
    assert events(api, space, "GpusIdleStopped") == {"idle", pods}
    # The others got no event in all of these rounds.
    assert not {"works", "fresh"} & events(api, space, "GpusIdle")
    for name in ("works", "fresh"):
        assert running(api, space, name) and STOP_AT not in notes(api, space, name)
    text = eventually(lambda: (now := metrics()) and 'stopped_total{kind="Job"} 1' in now and now, metrics)
    assert STOPPED_LABEL in lab.workload("forgotten")["metadata"]["labels"]
    assert 'trainstack_idle_stopped_total{kind="Pod"} 1' in text and "trainstack_idle_blind 0" in text
    assert f'trainstack_checkpoint_age_seconds{{namespace="{space}",holder="fresh"}}' in text


def events(api: KubernetesApi, space: str, reason: str) -> set[str]:
    """The pods that an Event of a reason is about."""
    return {
        str(event["involvedObject"]["name"])
        for event in api.list("v1", "Event", space)
        if not reason or event.get("reason") == reason
    }


def read(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=5) as found:
            return str(found.read().decode())
    except OSError:
        return ""
