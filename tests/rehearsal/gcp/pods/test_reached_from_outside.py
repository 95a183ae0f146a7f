"""Resources that GKE creates in the project for externally reachable Services, and their deletion."""

import json
from typing import Any

import pytest

from rehearsal.core.model import RefusalError
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.kubernetes.harness import SERVICE, Rehearsed

BALANCED: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "mlflow"},
    "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
}
GROUPED: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "namespace": "mlflow",
        "annotations": {"cloud.google.com/neg": json.dumps({"exposed_ports": {"80": {}, "443": {}}})},
    },
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
}


def made(google: Driver) -> list[str]:
    """The kinds of resources that GKE created for Services."""
    kinds = ("forwardingRule:ForwardingRule", "networkEndpointGroup:NetworkEndpointGroup")
    found = [kind for kind in kinds for _ in google.state.find(type=f"gcp:compute/{kind}")]
    rules = google.state.find(type="gcp:compute/firewall:Firewall")
    return [*found, *(f"firewall {one.id[:7]}" for one in rules if one.id.startswith("k8s-fw-"))]


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (BALANCED, ["forwardingRule:ForwardingRule", "firewall k8s-fw-"]),
        (GROUPED, ["networkEndpointGroup:NetworkEndpointGroup"] * 2),
    ],
)
def test_resources_are_deleted_with_the_service_only(
    gke: Rehearsed, google: Driver, service: dict[str, Any], expected: list[str]
) -> None:
    key, outputs = gke.create(SERVICE, service, "web")
    assert made(google) == expected
    gke.cloud.delete(gke.call(SERVICE, "web"), key, outputs)
    assert made(google) == []
    gke.create(SERVICE, service, "web")
    for name in ("system", "gke"):
        google.delete(name)
    with pytest.raises(RefusalError, match="already being used by"):
        google.delete("clusters")


@pytest.mark.parametrize("said", ["", "no JSON", "[]", '{"ingress": true}', '{"exposed_ports": 7}'])
def test_an_annotation_that_names_no_port_makes_nothing(gke: Rehearsed, google: Driver, said: str) -> None:
    plain = {
        "metadata": {"name": "web", "namespace": "mlflow", "annotations": {"cloud.google.com/neg": said}},
        "spec": {"ports": [{"port": 80}]},
    }
    gke.create(SERVICE, plain, "web")
    assert made(google) == []
