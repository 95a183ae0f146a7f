"""Clusters that get no jobs: those without a connection, and those whose Lease is old."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.clusters.controller import Dispatcher
from agents.clusters.dispatch import CLUSTER_LABEL, LOST_TAINT
from agents.clusters.nominating import ApplyingServer


class Server(ApplyingServer):
    """Two clusters, of which Kueue is connected to one; keeps the patches of flavors."""

    def __init__(self) -> None:
        self.taints: dict[str, Any] = {}

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
