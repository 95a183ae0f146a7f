"""Clusters that get no jobs: those without a connection, and those whose Lease is old."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.clusters.controller import Dispatcher
from agents.clusters.dispatch import CHECK, CLUSTER_LABEL, LOST_TAINT
from agents.clusters.nominating import ApplyingServer


def workload(name: str) -> dict[str, Any]:
    """One with quota on `east`."""
    admission = {"podSetAssignments": [{"flavors": {"cpu": "east"}}]}
    conditions = [{"type": "QuotaReserved", "status": "True"}]
    checks = [{"name": CHECK, "state": "Pending"}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team", "resourceVersion": "7"},
        "status": {"conditions": conditions, "admissionChecks": checks, "admission": admission},
    }


class Server(ApplyingServer):
    """Two clusters, of which Kueue is connected to one; keeps the patches of flavors."""

    def __init__(self) -> None:
        self.taints: dict[str, Any] = {}
        self.applied: list[str] = []

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """Two Workloads with quota of the connected cluster."""
        yield [workload("refused"), workload("other")], "7"

    def apply(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """The nomination of a Workload, one of which is refused."""
        self.applied.append(path.split("/")[-2])
        return (422, {"message": "no"}) if "refused" in path else (200, {})

    def every(self, path: str, **selectors: str) -> Iterator[dict[str, Any]]:
        """Connections or flavors."""
        for name in ("east", "west"):
            if path.endswith("/multikueueclusters"):
                rows = [{"type": "Active", "status": str(name == "east")}]
                yield {"metadata": {"name": name}, "status": {"conditions": rows}}
            else:
                spec = {"nodeLabels": {CLUSTER_LABEL: name}, "nodeTaints": self.taints.get(name, [])}
                yield {"metadata": {"name": name}, "spec": spec}

    def must(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The change of a flavor."""
        self.taints[path.rpartition("/")[2]] = body["spec"]["nodeTaints"]
        return {}


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_connected_cluster_with_an_old_lease_gets_no_jobs_and_its_lease_is_still_renewed(
    server: Server,
) -> None:
    dispatcher = Dispatcher(server)
    assert dispatcher.connect() == {"east"}
    dispatcher.look(stale={"east"})
    assert dispatcher.lost == {"east", "west"} and dispatcher.connected == {"east"}
    assert server.taints == {"east": [LOST_TAINT], "west": [LOST_TAINT]}
    dispatcher.look()
    assert dispatcher.lost == {"west"}
    assert server.taints["east"] == []


def test_a_refused_change_stops_no_other_job_and_is_tried_again(server: Server) -> None:
    dispatcher = Dispatcher(server)
    dispatcher.connect()
    dispatcher.look()
    assert dispatcher.review() == "7"
    assert server.applied == ["refused", "other"]
    assert dispatcher.refused
