"""A manager and its workers as a stack has them: queues, rights, kubeconfigs with tokens, the dispatcher."""

import base64
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import Popen
from typing import Any

from agents.clusters.dispatch import CLUSTER_LABEL, LOST_TAINT, is_active
from agents.clusters.renewing import kubeconfig
from components.kubernetes.clusters import dispatching, worker
from components.kubernetes.clusters.manager import ClusterArgs, flavors, teams
from components.kubernetes.people import user
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from infra.naming import cluster_pool, flavor_name
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from rehearsal.controlplane.processes import free_ports
from tests.cluster.manifests import manifests
from tests.cluster.programs import started
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.waiting import eventually
from tests.components.graph import deploy_graph

TEAMS: list[TeamArgs] = [
    {"name": "Research", "weight": 1, "gpus": {"l4": 1}},
    {"name": "Vision", "weight": 1, "gpus": {"l4": 1}},
]
TYPES = {"l4": "g6.2xlarge"}
# West is cheaper: its capacity is committed.
PRICES = {"east": 0.98, "west": 0.5}
LOGIN = [user("system:serviceaccount:default:default")]
_RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def pool(cluster: str, nodes: int = 2) -> FlavorArgs:
    """The only pool of a worker: nodes with one GPU each."""
    labels = {"trainstack.dev/pool": "l4", CLUSTER_LABEL: cluster}
    return flavor("l4", TYPES["l4"], nodes, usd_per_hour=PRICES[cluster], node_labels=labels)


@dataclass
class Fleet:
    """The manager's queues, the workers' ones, and the dispatcher's process."""

    planes: Mapping[str, ControlPlane]
    manager: Lab
    workers: Mapping[str, Lab]
    folder: Path
    values: Mapping[str, Any]
    """Values of the manager's Kueue."""
    suffix: str
    """End of the names of teams."""
    program: "Popen[str] | None" = None
    jobs: list[str] = field(default_factory=list)

    def connect(self, name: str, *, seconds: int = 3600) -> None:
        """Write the Secret of a worker with a new token of the manager's account there."""
        token = self.workers[name].api.token(worker.NAMESPACE, worker.ACCOUNT, seconds=seconds)
        self.write(name, self.config(name, token))

    def config(self, name: str, token: str) -> Mapping[str, object]:
        """The kubeconfig of a worker."""
        return kubeconfig(**self._server(name), token=token)

    def renewed(self, name: str) -> Object:
        """A worker as the program that renews tokens gets it."""
        own = {"namespace": worker.NAMESPACE, "account": worker.ACCOUNT}
        return {"name": name, **self._server(name), **own}

    def _server(self, name: str) -> dict[str, str]:
        access = self.workers[name].api.access
        authority = base64.b64encode(access.authority.read_bytes()).decode()
        return {"server": access.server, "authority": authority}

    def restart_queue(self) -> None:
        """Start Kueue of the manager anew."""
        self.planes["manager"].install("kueue", self.values)

    def write(self, name: str, config: Mapping[str, object]) -> None:
        """Write the Secret of a worker."""
        text = base64.b64encode(json.dumps(config).encode()).decode()
        metadata = {"name": name, "namespace": "kueue-system"}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"kubeconfig": text}}
        self.manager.api.apply(body)

    def active(self, name: str) -> bool:
        """Whether Kueue is connected to a worker."""
        return is_active(self.manager.api.get(API_VERSION, "MultiKueueCluster", name))

    def open(self, name: str) -> bool:
        """Whether jobs are admitted to a worker again."""
        found = self.manager.api.get(API_VERSION, "ResourceFlavor", flavor_name(cluster_pool(name, "l4")))
        return self.active(name) and LOST_TAINT not in found["spec"].get("nodeTaints", ())

    def start(self, renewed: Sequence[Object] = (), metadata: str = "") -> None:
        """Run the dispatcher with the account and the rights of its component.

        `renewed`: workers whose tokens it renews; `metadata`: address of the metadata server.
        """
        (port,) = free_ports(1)
        folder = self.folder / uuid.uuid4().hex[:6]
        folder.mkdir()
        api = self.manager.api
        token = api.token(dispatching.NAMESPACE, dispatching.NAME)
        words = {"port": port, "workers": json.dumps(list(renewed)), "lasts-s": 600}
        at = {"GCE_METADATA_HOST": metadata}
        self.program = started(dispatching.PROGRAM, words, api.access, token, folder, environment=at)

    def stop(self) -> str:
        """End the dispatcher; returns what it wrote."""
        assert self.program
        self.program.kill()
        said = "".join(self.program.communicate())
        self.program = None
        return said

    def submit(self, team: str, gpus: int = 1, pods: int = 1, **more: Any) -> str:
        """A Job on the manager."""
        name = f"job-{uuid.uuid4().hex[:6]}"
        self.manager.submit(team, name, gpus=gpus, pods=pods, **more)
        self.jobs.append(name)
        return name

    def where(self, job: str) -> dict[str, int]:
        """Pods of a Job that run, by worker."""
        namespace = self.manager.jobs[job]
        found = {}
        for name, lab in self.workers.items():
            labels = f"batch.kubernetes.io/job-name={job}"
            rows = lab.api.list("v1", "Pod", namespace, labels=labels)
            if running := sum((row.get("status") or {}).get("phase") == "Running" for row in rows):
                found[name] = running
        return found

    def runs_on(self, job: str, cluster: str, pods: int = 1) -> None:
        """Wait until a Job runs on a worker and on no other, and the manager has it as admitted there."""
        eventually(
            lambda: self.where(job) == {cluster: pods} and self.place(job) == cluster,
            lambda: self.state(job),
            30,
        )

    def place(self, job: str) -> str:
        """The worker on which a Job runs, by its Workload on the manager; empty until it is admitted."""
        status = self.manager.workload(job).get("status") or {}
        return str(status.get("clusterName") or "") if self.manager.admitted(job) else ""

    def state(self, job: str) -> Any:
        """What is known about a Job, for the message of a failed test."""
        namespace = self.manager.jobs[job]
        remote = {
            name: [
                (row["metadata"]["name"], row.get("status"))
                for row in lab.api.list(API_VERSION, "Workload", namespace)
            ]
            for name, lab in self.workers.items()
        }
        return {
            "where": self.where(job), "manager": self.manager.workload(job).get("status"), "remote": remote,
            "job": self.manager.job(job).get("status"),
        }  # fmt: skip

    def finish(self, *jobs: str) -> None:
        """Remove Jobs, and wait until no worker has them."""
        for job in jobs:
            self.jobs.remove(job)
            namespace = self.manager.jobs[job]
            self.manager.finish(job)
            eventually(
                lambda: (
                    not any(
                        lab.api.find("batch/v1", "Job", job, namespace) or self.where_at(job, namespace)  # noqa: B023
                        for lab in self.workers.values()
                    )
                ),
                f"{job} is gone",
                30,
            )

    def where_at(self, job: str, namespace: str) -> bool:
        """Whether pods of a Job are left on any worker."""
        labels = f"batch.kubernetes.io/job-name={job}"
        return any(lab.api.list("v1", "Pod", namespace, labels=labels) for lab in self.workers.values())


@contextmanager
def metadata_server(token: str) -> Iterator[str]:
    """The address of a metadata server of Google Cloud whose identity has this token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"access_token": token}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def given(api: KubernetesApi, made: Callable[[], Mapping[str, Any]]) -> None:
    """Create the accounts and rights of a component."""
    for body in manifests(deploy_graph(made)):
        if body["kind"] in _RIGHTS:
            api.apply(body)


@contextmanager
def fleet(
    planes: Mapping[str, ControlPlane],
    origin: str,
    values: Mapping[str, Any],
    folder: Path,
    *,
    first: Sequence[str] = (),
    nodes: int = 2,
) -> Iterator[Fleet]:
    """The queues of a manager and of its workers, connected; the control planes end with it.

    `first`: the workers that the manager has at first; default: all. `nodes`: of each worker.
    """
    suffix = uuid.uuid4().hex[:6]
    names = [name for name in planes if name != "manager"]
    first = first or names
    args: list[ClusterArgs] = [{"name": name, "flavors": [pool(name, nodes)]} for name in first]
    with ExitStack() as stack:
        apis = {name: stack.enter_context(plane.api()) for name, plane in planes.items()}
        workers = {}
        for name in names:
            stack.enter_context(machines(apis[name], [pool(name, nodes)], TYPES))
            workers[name] = stack.enter_context(
                queues(apis[name], [pool(name, nodes)], TEAMS, suffix=suffix, stays=True)
            )
            namespaces = list(workers[name].namespaces.values())
            given(
                apis[name],
                lambda: {"a": worker.ManagerAccess("w", {"namespaces": namespaces, "login": LOGIN}).account},  # noqa: B023
            )
        given(
            apis["manager"],
            lambda: {
                "p": dispatching.Dispatching("d", {"image": IMAGE, "workers": [], "names": first}).program
            },
        )
        # A queue is active once its check is, and that once a worker is connected.
        made = Fleet(planes, Lab(apis["manager"], {}), workers, folder, values, suffix)
        for name in first:
            made.connect(name)
        made.manager = stack.enter_context(
            queues(
                apis["manager"],
                flavors(args),
                teams(args, TEAMS),
                suffix=suffix,
                stays=True,
                sends={"stack": origin, "clusters": first},
            )
        )
        eventually(lambda: all(made.active(name) for name in first), "workers are connected")
        for lab in (made.manager, *workers.values()):
            eventually(partial(_policed, lab), "policies hold")
        made.start()
        yield made
        made.stop()


def _policed(lab: Lab) -> bool:
    """Whether the policies of a cluster hold: a job that names another controller is refused."""
    container = {"name": "main", "image": "example.com/none:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": "probe", "namespace": next(iter(lab.namespaces.values()))}
    spec = {"managedBy": "example.com/none", "template": template}
    job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    try:
        lab.api.create(job, dry_run=True)
    except ApiError as error:
        return "managedBy" in str(error)
    return False
