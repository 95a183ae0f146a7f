"""A node of this machine in the cluster of the tests: our agent runs its pods as processes."""

import contextlib
import datetime
import threading
from collections.abc import Iterator
from pathlib import Path

from rehearsal.controlplane.api import KubernetesApi
from rehearsal.core.state import State
from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.realcluster.agent import Agent
from tests.cluster.waiting import eventually

NAME = ambient.nodes()[0].name
_LEASE = "coordination.k8s.io/v1"


@contextlib.contextmanager
def joined(api: KubernetesApi, folder: Path, *, agent_api: KubernetesApi | None = None) -> Iterator[None]:
    """The node has joined and sends heartbeats; `agent_api` is the agent's connection, if not `api`."""
    home, over = folder / "home", threading.Event()
    home.mkdir()
    state = State(home / "state.sqlite", daemon=True)
    scope = KubeCluster(state, ambient.RECORD).scope
    agent = Agent(state, home, agent_api or api, lambda cluster, pod, folder: {}, scope)
    agent.start()
    eventually(lambda: api.find("v1", "Node", NAME), "the node joins")

    def beat() -> None:
        metadata = {"name": NAME, "namespace": "kube-node-lease"}
        while not over.wait(2.0):
            now = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
            spec = {"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": now}
            own.apply({"apiVersion": _LEASE, "kind": "Lease", "metadata": metadata, "spec": spec})

    with KubernetesApi(api.access) as own:
        beating = threading.Thread(target=beat)
        beating.start()
        yield
        over.set()
        beating.join()
    agent.stop()
    state.close()
    api.delete("v1", "Node", NAME)
    api.delete(_LEASE, "Lease", NAME, "kube-node-lease")
