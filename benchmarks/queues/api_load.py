"""Requests, bytes and memory of all programs that watch jobs, in a large cluster with a long history.

    python benchmarks/queues/api_load.py [FINISHED] [PODS] [NODES] [TEAMS]

A real API server with Kueue's kinds; nodes and pods are KWOK's. FINISHED jobs that ended (their Workloads,
and half as many ended pods) of 200 projects in each of TEAMS teams, PODS running pods of one GPU each with
a Workload, and a quarter as many jobs that wait for quota; all are written into etcd. Kueue's controller does
not run: one Workload a second is admitted anew while it is measured. Each program has a proxy that counts.
The ledger is started twice: with an empty book of each team, and again with the books that the first one
wrote.
The binaries have to be built: `make binaries`.
"""

import base64
import contextlib
import itertools
import json
import re
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agents.gpu_ledger.attempts import PROJECT_LABEL
from agents.shared.times import stamp
from components.kubernetes.accounting import gpu_ledger
from components.kubernetes.capacity import capacity_windows
from components.kubernetes.idle import idle_gpus
from components.kubernetes.programs.program import Program
from components.kubernetes.queueing import kueue_values
from rehearsal.controlplane.api import KubernetesApi, Object, UnknownKindError
from rehearsal.controlplane.binaries import files_of, ready
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.helm import Release, render
from rehearsal.controlplane.nodes import KwokPool, add_nodes
from rehearsal.controlplane.processes import free_ports
from tests.agents.idle_gpus.recorded import answer, series
from tests.cluster.counting_proxy import Counted, counting
from tests.cluster.programs import started
from tests.cluster.waiting import eventually

FINISHED, PODS, NODES, TEAMS, PROJECTS = 20_000, 2_000, 500, 25, 200
RBAC = "rbac.authorization.k8s.io"
GPU, KUEUE, ACCOUNT = "nvidia.com/gpu", "kueue.x-k8s.io/v1beta2", "bench"
MEASURED_S = 150.0


def main() -> None:
    """Print the figures."""
    given = [int(word) for word in sys.argv[1:]]
    finished, pods, nodes, teams = [*given, *(FINISHED, PODS, NODES, TEAMS)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder, running(ControlPlaneOptions(Path(folder) / "run")) as plane:
        bench = Bench(plane, Path(folder), [f"team-{index}" for index in range(teams)])
        bench.fill(finished, pods, nodes)
        print(json.dumps(bench.measured(), indent=2))


class Bench:
    """The cluster, and the programs in it."""

    def __init__(self, plane: ControlPlane, folder: Path, teams: list[str]) -> None:
        self._plane, self._folder, self._teams = plane, folder, teams
        self._pods: list[tuple[str, str]] = []

    def fill(self, finished: int, pods: int, nodes: int) -> None:
        """Make everything that the programs find."""
        with self._plane.api() as api:
            binaries = ready()
            assert binaries, "make binaries"
            (chart,) = files_of("kueue")
            values = kueue_values.values(claimed={})
            for body in render(binaries["helm"], chart, Release("kueue", "kueue-system"), values):
                if body["kind"] == "CustomResourceDefinition":
                    body["spec"].pop("conversion", None)
                    body["metadata"].pop("annotations", None)
                    api.create(body)
            eventually(lambda: _knows(api), "the kinds are served")
            for name in [*self._teams, ACCOUNT]:
                api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            api.create({"apiVersion": "v1", "kind": "ServiceAccount",
                        "metadata": {"name": ACCOUNT, "namespace": ACCOUNT}})  # fmt: skip
            role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
            subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ACCOUNT}
            api.create({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "roleRef": role,
                        "metadata": {"name": ACCOUNT}, "subjects": [subject]})  # fmt: skip
            api.create({"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "window-a100"},
                        "spec": {"controllerName": "trainstack.dev/capacity-window"}})  # fmt: skip
            add_nodes(api, [KwokPool("a100", "p4d.24xlarge", nodes)])
            self._nodes = [node["metadata"]["name"] for node in api.list("v1", "Node")]
        began = time.monotonic()
        self._store(itertools.chain(
            (self._workload(f"done-{number}", number, ended=True) for number in range(finished)),
            (self._pod(f"ended-{number}", number, "Succeeded") for number in range(finished // 2)),
            (self._workload(f"run-{number}", number, ended=False) for number in range(pods)),
            (self._pod(f"run-{number}", number, "Running") for number in range(pods)),
            (self._waiting(f"wait-{number}", number) for number in range(pods // 4)),
        ))  # fmt: skip
        self._pods = [(self._team(number), f"run-{number}") for number in range(pods)]
        with self._plane.api() as api:
            eventually(lambda: api.find(KUEUE, "Workload", f"run-{pods - 1}", self._team(pods - 1)), "jobs")
        sys.stderr.write(f"filled in {time.monotonic() - began:.0f} s\n")

    def _store(self, objects: Iterator[tuple[str, Object]]) -> None:
        """Write objects into etcd as the API server does, which takes ten times as long for them."""
        home = self._plane.home
        log = (home / "etcd.log").read_text(encoding="utf-8")
        found = re.search(r'listen-client-urls":\["(https://[^"]+)"', log)
        assert found, "etcd logs its address"
        with requests.Session() as link:
            # A bundle of the environment would take precedence.
            link.trust_env = False
            link.verify = str(self._plane.access.authority)
            pair = home / "certificates" / "kube-apiserver-etcd-client"
            link.cert = (f"{pair}.crt", f"{pair}.key")
            while batch := [*itertools.islice(objects, 100)]:
                puts = [{"request_put": {"key": _base64(key), "value": _base64(json.dumps(body))}}
                        for key, body in batch]  # fmt: skip
                answer = link.post(f"{found[1]}/v3/kv/txn", json={"success": puts}, timeout=60)
                answer.raise_for_status()

    def _team(self, number: int) -> str:
        return self._teams[number % len(self._teams)]

    def _head(self, name: str, number: int, labels: Mapping[str, str]) -> Object:
        return {
            "name": name, "namespace": self._team(number), "uid": str(uuid.uuid4()), "labels": dict(labels),
            "creationTimestamp": stamp(time.time() - 4 * 86_400), "generation": 1,
        }  # fmt: skip

    def _pod(self, name: str, number: int, phase: str) -> tuple[str, Object]:
        container = _container({"limits": {GPU: "1"}, "requests": {GPU: "1"}})
        spec = {"nodeName": self._nodes[number % len(self._nodes)], "restartPolicy": "Never",
                "containers": [container], "tolerations": [{"operator": "Exists"}]}  # fmt: skip
        state = {"running": {"startedAt": stamp(time.time() - 86_400)}} if phase == "Running" else {}
        statuses = [
            {"name": "main", "state": state, "ready": True, "restartCount": 0, "image": "", "imageID": ""}
        ]
        body = {
            "apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": self._head(name, number, {"batch.kubernetes.io/job-name": name}),
            "status": {"phase": phase, "containerStatuses": statuses},
        }  # fmt: skip
        return f"/registry/pods/{self._team(number)}/{name}", body

    def _workload(self, name: str, number: int, *, ended: bool) -> tuple[str, Object]:
        template = {"spec": {"restartPolicy": "Never", "containers": [_container({"requests": {GPU: "1"}})]}}
        project = f"project-{number // len(self._teams) % PROJECTS}"
        assigned = {"name": "main", "count": 1, "flavors": {GPU: "a100"}, "resourceUsage": {GPU: "1"}}
        at = time.time() - (3 * 86_400 - number if ended else 3600)
        body = {
            "apiVersion": KUEUE, "kind": "Workload",
            "metadata": self._head(name, number, {PROJECT_LABEL: project}),
            "spec": {"queueName": "default", "podSets": [{"name": "main", "count": 1, "template": template}]},
            "status": {
                "admission": {"clusterQueue": "team", "podSetAssignments": [assigned]},
                "conditions": _conditions(at, at + 60 if ended else None),
            },
        }  # fmt: skip
        return f"/registry/kueue.x-k8s.io/workloads/{self._team(number)}/{name}", body

    def _waiting(self, name: str, number: int) -> tuple[str, Object]:
        """A Workload without quota, and the reference to its job."""
        key, body = self._workload(name, number, ended=False)
        words = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu"
        at = {"lastTransitionTime": stamp(time.time()), "reason": "Pending", "message": words}
        body["status"] = {"conditions": [{"type": "QuotaReserved", "status": "False", **at}]}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": str(uuid.uuid4())}
        body["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        return key, body

    # ----------------------------------------------------------------------------------------------------

    def measured(self) -> Mapping[str, Any]:
        """Start the programs, and count for a while."""
        with contextlib.ExitStack() as stack:
            prometheus = stack.enter_context(_prometheus(self._pods))
            with self._plane.api() as api:
                token = api.token(ACCOUNT, ACCOUNT)
            budget: Object = {"usd": None, "gpu_hours": 1e9, "stop": True, "exempt": []}
            config = {
                "teams": {team: team for team in self._teams}, "prices": {"a100": {GPU: 4.0}},
                "budgets": dict.fromkeys(self._teams[::2], budget), "prometheus": prometheus,
            }  # fmt: skip
            every_s = max(idle_gpus.EVERY_S, idle_gpus.EACH_S * len(self._teams))
            block = {"starts": stamp(0), "ends": stamp(time.time() + 1e7), "drain_minutes": 5}
            programs: dict[str, tuple[Program, dict[str, Any]]] = {
                "ledger": (gpu_ledger.PROGRAM, {"config": json.dumps(config)}),
                "idle": (idle_gpus.PROGRAM, {
                    "prometheus": prometheus, "namespaces": json.dumps(self._teams),
                    "interactive-pools": "[]", "minutes": 45, "grace-minutes": 15, "jobs": "stop",
                    "interval-s": 1800, "startup-s": 3600, "every-s": every_s,
                }),
                "capacity": (capacity_windows.PROGRAM, {
                    "windows": json.dumps({"window-a100": {"pool": "a100", "block": block}}),
                }),
            }  # fmt: skip
            found: dict[str, Any] = {}
            counts: dict[str, Counted] = {}
            processes: dict[str, Any] = {}
            for name, (program, words) in programs.items():
                for turn in ("first", "again") if name == "ledger" else ("first",):
                    folder = self._folder / f"{name}-{turn}"
                    counts[name] = stack.enter_context(counting(self._plane.access, folder / "proxy"))
                    (port,) = free_ports(1)
                    began = time.monotonic()
                    given = {**words, "port": port}
                    process = started(program, given, counts[name].access, token, folder)
                    stack.callback(process.kill)
                    _await_metrics(port)
                    found[f"{name}, seconds to first metrics, {turn}"] = round(time.monotonic() - began, 1)
                    found[f"{name}, MiB read at start, {turn}"] = round(counts[name].size() / 2**20, 1)
                    if turn == "first" and name == "ledger":
                        with self._plane.api() as api:
                            kept = "api/v1/configmaps?labelSelector=app.kubernetes.io/name=gpu-ledger"
                            eventually(
                                lambda: len(api.request("GET", f"/{kept}")["items"]) >= len(self._teams),  # noqa: B023
                                "books of all teams", 600,
                            )  # fmt: skip
                        process.kill()
                    processes[name] = process
            # Each reads what there is, once; only what follows is counted.
            eventually(lambda: counts["capacity"].of("GET", "watch=true"), "a watch", 600)
            eventually(lambda: len(counts["idle"].requests) >= 2 * len(self._teams), "a round", 600)
            return {**found, **self._steady(counts, processes)}

    def _steady(self, counts: Mapping[str, Counted], processes: Mapping[str, Any]) -> Mapping[str, Any]:
        before = {name: len(one.requests) for name, one in counts.items()}
        began = time.monotonic()
        with self._plane.api() as api:
            for team, name in itertools.cycle(self._pods):
                if time.monotonic() > began + MEASURED_S:
                    break
                # It is admitted anew, as after a preemption.
                status = {"status": {"conditions": _conditions(time.time(), None)}}
                api.patch(KUEUE, "Workload", name, status, team, subresource="status")
                time.sleep(1)
        minutes = (time.monotonic() - began) / 60
        found: dict[str, Any] = {}
        for name, one in counts.items():
            rows = one.requests[before[name] :]
            found[f"{name}, requests a minute"] = round(len(rows) / minutes, 1)
            found[f"{name}, KiB a minute"] = round(sum(int(str(row[2])) for row in rows) / minutes / 1024)
            found[f"{name}, MiB of memory at most"] = _memory_mib(processes[name].pid)
        found["all, requests a minute"] = round(
            sum(found[f"{name}, requests a minute"] for name in counts), 1
        )
        found["all, MiB of memory"] = sum(found[f"{name}, MiB of memory at most"] for name in counts)
        return found


def _knows(api: KubernetesApi) -> bool:
    try:
        api.resource(KUEUE, "Workload")
    except UnknownKindError:
        return False
    return True


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _container(resources: Object) -> Object:
    """A container with as many variables as a launcher writes."""
    variables = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)]
    return {"name": "main", "image": "example.com/none:1", "resources": resources, "env": variables}


def _conditions(admitted: float, finished: float | None) -> list[Object]:
    true = {"status": "True", "reason": "Bench", "message": ""}
    rows: list[Object] = [
        {**true, "type": kind, "lastTransitionTime": stamp(admitted)}
        for kind in ("QuotaReserved", "Admitted", "PodsReady")
    ]
    if finished is not None:
        rows.append({**true, "type": "Finished", "lastTransitionTime": stamp(finished)})
    return rows


def _memory_mib(process: int) -> int:
    """The most memory that a process had, by the kernel."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def _await_metrics(port: int, patience_s: float = 600.0) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        address = f"http://127.0.0.1:{port}/metrics"
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=10) as found:
            if found.read().strip():
                return
        time.sleep(0.2)
    raise TimeoutError(f"no metrics at port {port}")


@contextlib.contextmanager
def _prometheus(pods: list[tuple[str, str]]) -> Iterator[str]:
    """A server that answers ranges with the figures of all running pods."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            begin, end, step = (float(query[name][0]) for name in ("start", "end", "step"))
            count = int((end - begin) // step) + 1
            rows = [series(name, [0.8] * count, end=end, namespace=team) for team, name in pods]
            body = json.dumps(answer(*rows if "PROF" in query["query"][0] else ())).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


if __name__ == "__main__":
    main()
