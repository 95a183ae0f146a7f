"""The Job before the first queue polls a real API server until its webhooks respond, with a timeout."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.queueing.controller import NAME
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.waiting.webhooks import PROGRAM
from rehearsal.controlplane.api import Access, ApiError, KubernetesApi, Object
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.processes import free_ports
from tests.cluster.programs import finished, started
from tests.cluster.queues.lab import IMAGE, NO_GATE
from tests.cluster.waiting import eventually, gone
from tests.components.graph import Graph, deploy_graph

SYSTEM, FLAVOR, WEBHOOK = "kueue-system", "readiness-cpu", "late.readiness.test"


@dataclass
class Ready:
    """What the component makes, but for Kueue, its queues, and the Job, whose program the test runs."""

    api: KubernetesApi
    flavor: Object
    given: Mapping[str, str]
    folder: Path

    def ask(self, seconds: float, account: str = NAME) -> Any:
        """The program's process, as the Job starts it but for its patience."""
        token = self.api.token(SYSTEM, account)
        given = {**self.given, "seconds": seconds, "message": self.folder / "message"}
        return started(PROGRAM, given, self.api.access, token, self.folder)

    def asked(self, seconds: float, account: str = NAME) -> tuple[int, str]:
        """The exit code and the reason."""
        return finished(self.ask(seconds, account), self.folder, seconds + 60)


def composed() -> Graph:
    node: Any = {"name": FLAVOR, "node_labels": {"pool": FLAVOR}, "max_nodes": 1, "cpu": 4, "memory_gib": 8}
    args: Any = {
        "flavors": [{**node, "gpus": 0}], "teams": [{"name": "readiness", "weight": 1}], "gate": NO_GATE,
        "ready_image": IMAGE,
        "control_plane": PlatformNetwork("eks", ["10.0.0.0/16"]),
    }  # fmt: skip
    return deploy_graph(lambda: {"cohort": Queueing("q", args).cohort})


@pytest.fixture
def ready(api: KubernetesApi, tmp_path: Path) -> Iterator[Ready]:
    graph = composed()
    rights = [
        {"apiVersion": asked.type.split(":")[1].removeprefix("core/"), "kind": kind, **asked.properties}
        for asked in graph.cloud.asked
        if (kind := asked.type.rpartition(":")[2]) in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    ]
    (container,) = graph.find("Job", "-ready")["spec"]["template"]["spec"]["containers"]
    words = {key.removeprefix("--"): word for key, word in _pairs(container["args"])}
    flavor = {"apiVersion": API_VERSION, "kind": "ResourceFlavor", **graph.find("ResourceFlavor")}
    for body in rights:
        api.apply(body)
    yield Ready(api, flavor, {key: words[key] for key in ("path", "object")}, tmp_path)
    for body in [*rights, flavor]:
        metadata = body["metadata"]
        api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
    gone(api, [*rights, flavor])


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    return zip(words[::2], words[1::2], strict=True)


class Webhook(BaseHTTPRequestHandler):
    """Allows everything, or says why not."""

    refusal = ""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"uid": review["request"]["uid"], "allowed": not self.refusal}
        review["response"] = {**answer, "status": {"code": 403, "message": self.refusal}}
        content = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


class Refusing(Webhook):
    refusal = "spec.nodeLabels: not these"


Listen = Callable[[type[Webhook]], None]


@pytest.fixture
def listen(api: KubernetesApi, ready: Ready, tmp_path: Path) -> Iterator[Listen]:
    """A webhook that has to be asked about this test's flavor; it answers from the moment of the call."""
    authority = Authority(tmp_path / "webhook", "readiness")
    (port,) = free_ports(1)
    bundle = base64.b64encode(authority.pem).decode()
    rule = {
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["resourceflavors"],
    }  # fmt: skip
    webhook = {
        "name": WEBHOOK, "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
        "rules": [rule], "sideEffects": "None", "failurePolicy": "Fail", "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "own", "expression": f"object.metadata.name == '{FLAVOR}'"}],
    }  # fmt: skip
    body: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK}, "webhooks": [webhook],
    }  # fmt: skip
    api.apply(body)
    eventually(lambda: WEBHOOK in refusal(api, ready.flavor), "the API server knows the webhook")
    servers: list[ThreadingHTTPServer] = []

    def answer(handler: type[Webhook]) -> None:
        pair = authority.sign("webhook")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()

    yield answer
    api.delete(body["apiVersion"], body["kind"], WEBHOOK)
    eventually(lambda: not refusal(api, ready.flavor), "the API server has forgotten the webhook")
    for server in servers:
        server.shutdown()
        server.server_close()


def refusal(api: KubernetesApi, flavor: Object) -> str:
    """Why the flavor would not be created, empty when it would."""
    try:
        api.create(flavor, dry_run=True)
    except ApiError as error:
        return str(error)
    return ""


def test_a_webhook_that_answers_late_is_waited_for_and_the_object_is_then_created(
    api: KubernetesApi, ready: Ready, listen: Listen
) -> None:
    process = ready.ask(60)
    assert process.stdout
    first = process.stdout.readline()
    assert f'500 Internal error occurred: failed calling webhook "{WEBHOOK}"' in first
    assert process.poll() is None
    listen(Webhook)
    code, message = finished(process, ready.folder, 60)
    assert code == 0 and FLAVOR in message and message.endswith(" 201")
    assert api.find(API_VERSION, "ResourceFlavor", FLAVOR) is None  # only asked
    assert api.create(ready.flavor)["metadata"]["uid"]
    assert ready.asked(60)[0] == 0  # of an object that exists, too
    api.delete(API_VERSION, "ResourceFlavor", FLAVOR)


def test_a_webhook_that_never_answers_ends_it_in_time_with_its_name(ready: Ready, listen: Listen) -> None:
    code, message = ready.asked(2)
    assert code == 1
    assert FLAVOR in message and "2 s" in message and f'failed calling webhook "{WEBHOOK}"' in message


def test_a_refusal_is_an_answer(ready: Ready, listen: Listen) -> None:
    listen(Refusing)
    code, message = ready.asked(60)
    assert code == 0, message
    assert Refusing.refusal in message


def test_its_account_may_ask_that_and_nothing_else(api: KubernetesApi, ready: Ready) -> None:
    token = api.token(SYSTEM, NAME)
    with KubernetesApi(Access(api.access.server, api.access.authority, token=token)) as theirs:
        assert theirs.create(ready.flavor, dry_run=True)
        for kind in ("ClusterQueue", "Topology"):
            other = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
            with pytest.raises(ApiError) as refused:
                theirs.create(other, dry_run=True)
            assert refused.value.code == 403


def test_an_account_without_the_right_is_reported(ready: Ready) -> None:
    code, message = ready.asked(60, account="default")
    assert code == 1
    assert "denied access" in message and "403 resourceflavors.kueue.x-k8s.io" in message
