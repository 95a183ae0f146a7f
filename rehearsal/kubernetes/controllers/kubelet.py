"""Runs the pods of Deployments and Jobs of the emulated clusters."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.kueue import admit, queued
from rehearsal.kubernetes.controllers.sandbox import Admitted, Identity, Sandbox, missing_hardware
from rehearsal.kubernetes.controllers.services import Services
from rehearsal.kubernetes.controllers.volumes import Account
from rehearsal.kubernetes.rules.admission import no_pods
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.controllers import PodOrder, Spawn, Status, Workload
from rehearsal.workloads.deployment import DeploymentController
from rehearsal.workloads.faults import inject_faults
from rehearsal.workloads.job import JobController, JobOrder
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.proxy import Proxy
from rehearsal.workloads.translate import Pod


@dataclass(frozen=True)
class RunningPod:
    """A workload with its cluster and object."""

    cluster: KubeCluster
    kind: str
    name: str
    workload: Workload


class Kubelet:
    """Every running workload of every emulated cluster; thread-safe."""

    def __init__(self, state: State, home: Path, identity: Identity, account: Account) -> None:
        self._home, self._identity, self._account = home, identity, account
        self._addresses = Addresses(state)
        self._proxy = Proxy()
        self._services: dict[str, Services] = {}
        self._sandboxes: dict[str, Sandbox] = {}
        self._running: dict[tuple[str, str, str], RunningPod] = {}
        self._computing: tuple[str, str, str] | None = None
        self._lock = threading.RLock()

    def deploy(self, cluster: KubeCluster, record: Record) -> DeploymentController:
        """Start the pods of a Deployment, replacing its current ones."""
        self.stop(cluster, "Deployment", record.id)
        metadata = record.outputs["metadata"]
        run = DeploymentController(metadata, record.inputs["spec"], self._spawner(cluster, record))
        self._keep(cluster, "Deployment", record, run)
        run.start()
        return run

    def run_job(
        self,
        cluster: KubeCluster,
        record: Record,
        warn: Callable[[str], None],
        runs: Callable[[bool], None],
        ended: Callable[[Status], None],
    ) -> JobController:
        """Start a Job; `warn` gets problems of real clusters, `ended` the last status.

        `runs` is called when its pods start, and when it is suspended.
        """
        self.stop(cluster, "Job", record.id)
        metadata, spec = record.outputs["metadata"], record.inputs["spec"]
        labels, key = record.inputs.get("metadata") or {}, (cluster.scope, "Job", record.id)

        def hold() -> str:
            reason = admit(cluster, metadata["namespace"], labels, spec).reason
            return reason or ("" if suspended() else self._turn(key, spec))

        def suspended() -> bool:
            live = cluster.get("Job", metadata["namespace"], record.name) or record
            return bool(live.inputs["spec"].get("suspend")) and not queued(cluster, labels)

        def started(pods: list[PodRunner]) -> None:
            runs(bool(pods))
            if not pods and self._computing == key:
                self._computing = None
            warning = self._sandbox(cluster).growth([runner.pod for runner in pods])
            if warning:
                warn(warning)
            for runner in pods:
                inject_faults(runner, self._home)

        order = JobOrder(
            metadata["namespace"],
            record.name,
            metadata["uid"],
            spec,
            hold,
            suspended,
            lambda: dict(admit(cluster, metadata["namespace"], labels, spec).node_selector or {}),
        )
        run = JobController(order, self._spawner(cluster, record), started, ended)
        self._keep(cluster, "Job", record, run)
        run.start()
        return run

    def find(self, cluster: KubeCluster, kind: str, id: str) -> Workload | None:
        """The running workload of an object, None when this process started none."""
        with self._lock:
            found = self._running.get((cluster.scope, kind, id))
        return found.workload if found else None

    def stop(self, cluster: KubeCluster, kind: str, id: str, *, now: bool = False) -> None:
        """End a workload's processes, if it has any."""
        with self._lock:
            found = self._running.pop((cluster.scope, kind, id), None)
        if found is None:
            return
        found.workload.stop(now=now)
        for runner in found.workload.pods():
            self._sandbox(cluster).forget(runner.pod)

    def forget(
        self, cluster: KubeCluster, kind: str, namespace: str, name: str, pods: list[PodRunner]
    ) -> None:
        """Remove the folders and addresses of a deleted workload's pods. Logs stay."""
        self._addresses.release(f"{cluster.scope}|{kind.lower()}|{namespace}/{name}|")
        for runner in pods:
            folder = self._home / "pods" / namespace / runner.pod.name
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)

    def stop_all(self) -> None:
        """End all processes in parallel."""
        with self._lock:
            found, self._running = list(self._running.values()), {}
        threads = [threading.Thread(target=running.workload.stop, kwargs={"now": True}) for running in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15.0)
        self._proxy.stop()

    def services(self, cluster: KubeCluster) -> Services:
        """The Services of a cluster."""
        with self._lock:
            scope = cluster.scope
            if scope not in self._services:
                self._services[scope] = Services(
                    cluster, self._addresses, self._proxy, lambda: list(self.pods(scope))
                )
            return self._services[scope]

    def pods(self, scope: str) -> Iterator[PodRunner]:
        """The pods of one cluster."""
        with self._lock:
            found = [running for key, running in self._running.items() if key[0] == scope]
        for running in found:
            yield from running.workload.pods()

    def describe(self) -> list[dict[str, Any]]:
        """Every pod of every workload, as a row of `status`."""
        with self._lock:
            found = list(self._running.values())
        return [
            {
                "cluster": running.cluster.name,
                **described(
                    running.kind, running.name, runner, self.services(running.cluster).urls(runner.pod)
                ),
            }
            for running in found
            for runner in running.workload.pods()
        ]

    # --------------------------------------------------------------------------------------------------

    def _keep(self, cluster: KubeCluster, kind: str, record: Record, workload: Workload) -> None:
        with self._lock:
            self._running[(cluster.scope, kind, record.id)] = RunningPod(cluster, kind, record.name, workload)

    def _turn(self, key: tuple[str, str, str], spec: Any) -> str:
        """The reason why a Job waits for another one; it takes its turn where needed.

        GPUs are emulated on this machine's processors: two Jobs at once would distort each other's
        measurements.
        """
        if not any(missing_hardware(container) for container in spec["template"]["spec"]["containers"]):
            return ""
        with self._lock:
            other = self._running.get(self._computing) if self._computing else None
            workload = other.workload if other and self._computing != key else None
            if other and isinstance(workload, JobController) and not workload.over.is_set():
                return f"Job {other.name} computes on this machine"
            self._computing = key
            return ""

    def _sandbox(self, cluster: KubeCluster) -> Sandbox:
        with self._lock:
            scope = cluster.scope
            if scope not in self._sandboxes:
                self._sandboxes[scope] = Sandbox(
                    cluster, self._home, self.services(cluster), self._identity, self._account
                )
            return self._sandboxes[scope]

    def _spawner(self, cluster: KubeCluster, record: Record) -> Spawn:
        """Pod factory of an object's controller."""
        namespace = str(record.outputs["metadata"]["namespace"])
        node = Admitted(self._sandbox(cluster), lambda: no_pods(record.type, record.inputs, cluster))

        def spawn(order: PodOrder, restart: str, on_change: Callable[[], None]) -> PodRunner:
            pod = Pod(
                namespace=namespace,
                name=order.name,
                uid=f"{namespace}/{order.name}",
                ip=self._addresses.of(f"{cluster.scope}|{order.slot}"),
                spec=order.spec,
                labels=order.labels,
                annotations=order.annotations,
            )
            log = self._home / "logs" / namespace / f"{order.name}.log"
            return PodRunner(pod, node, log, restart=restart, cpus=order.cpus, on_change=on_change)

        return spawn


def described(kind: str, name: str, runner: PodRunner, services: list[str]) -> dict[str, Any]:
    """A row of `status` for a pod: `kind` and `name` of its owner, URLs by `services`."""
    state, pod = runner.state, runner.pod
    ports = [
        int(port["containerPort"])
        for container in pod.spec.get("containers") or ()
        for port in container.get("ports") or ()
    ]
    return {
        "kind": kind,
        "namespace": pod.namespace,
        "name": name,
        "pod": pod.name,
        "phase": state.phase,
        "ready": state.ready,
        "run": state.run,
        "reason": state.reason,
        "message": state.message,
        "notes": list(state.notes),
        "restarts": state.restarts,
        "address": pod.ip,
        "ports": ports,
        "urls": services or [f"http://{pod.ip}:{port}" for port in ports],
        "pids": runner.supervisors() + runner.pids(),
        "log": str(runner.log),
    }
