"""Network policies admit the API server to the ports of charts that it needs, and to no others.

No network enforces policies here: what they say is held against what the rendered charts declare, so that
a chart that moves a port fails.
"""

from collections.abc import Iterator

import pytest

from components.kubernetes.charts import charts
from components.kubernetes.network_policies import Ports
from components.kubernetes.queueing import kueue_values
from components.kubernetes.training import trainer
from rehearsal.controlplane.api import Object
from tests.cluster.stack_objects import of_charts, of_program

PORTS = {"kueue": kueue_values.PORTS, "jobset": trainer.JOBSET_PORTS, trainer.CHART: trainer.PORTS}
# Served to pods of TrainJobs only where the feature TrainJobStatus is on, which no value here switches on.
UNUSED = {trainer.CHART: {"status-server"}}


@pytest.fixture(params=PORTS)
def chart(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in of_charts():
        pytest.skip(f"the chart {name} is not here: `make binaries` fetches it, and says why it cannot")
    return name


def declared(chart: str) -> dict[str, int]:
    """The ports of the controller's pods by their names."""
    (deployment,) = [body for body in of_charts()[chart] if body["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def asked_by_api_servers(objects: list[Object]) -> Iterator[tuple[str, int]]:
    """The Services that API servers connect to, each with its port."""
    for body in objects:
        if body["kind"].endswith("WebhookConfiguration"):
            clients = [webhook["clientConfig"]["service"] for webhook in body["webhooks"]]
        elif body["kind"] == "APIService":
            clients = [body["spec"]["service"]]
        elif body["kind"] == "CustomResourceDefinition" and body["spec"].get("conversion"):
            clients = [body["spec"]["conversion"]["webhook"]["clientConfig"]["service"]]
        else:
            clients = []
        for client in clients:
            yield client["name"], client.get("port", 443)


def target(chart: str, service: str, port: int) -> int:
    """The port of the pods behind one of a Service."""
    (found,) = [
        each
        for body in of_charts()[chart]
        if body["kind"] == "Service" and body["metadata"]["name"] == service
        for each in body["spec"]["ports"]
        if each["port"] == port
    ]
    wanted = found["targetPort"]
    return declared(chart)[wanted] if isinstance(wanted, str) else int(wanted)


def test_the_api_server_reaches_every_webhook_and_group_and_no_other_port(chart: str) -> None:
    wanted = {target(chart, *client) for client in set(asked_by_api_servers(of_charts()[chart]))}
    assert wanted == set(PORTS[chart].api_server)


def test_metrics_are_where_the_chart_serves_them(chart: str) -> None:
    (metrics,) = [number for name, number in declared(chart).items() if name == "metrics"]
    assert PORTS[chart].metrics == (metrics,)


def test_other_ports_are_for_probes_or_closed(chart: str) -> None:
    known = {*PORTS[chart].api_server, *PORTS[chart].metrics}
    others = {name for name, number in declared(chart).items() if number not in known}
    assert others - UNUSED.get(chart, set()) <= {"health", "health-probe"}
    configuration = [body for body in of_charts()[chart] if body["kind"] == "ConfigMap"]
    assert "TrainJobStatus" not in str(configuration)


def test_the_policies_name_these_ports(chart: str) -> None:
    namespace = charts()[chart].namespace
    (policy,) = [
        body["spec"]
        for body in of_program()
        if body["kind"] == "NetworkPolicy" and body["metadata"]["namespace"] == namespace
    ]
    assert policy["podSelector"] == {} and policy["policyTypes"] == ["Ingress", "Egress"]
    from_api_server, from_readers = policy["ingress"]
    assert from_api_server["from"] == [{"ipBlock": {"cidr": "10.0.0.0/16"}}]
    said = Ports(
        api_server=tuple(port["port"] for port in from_api_server["ports"]),
        metrics=tuple(port["port"] for port in from_readers["ports"]),
    )
    assert said == PORTS[chart]
    out = {(port["port"], port["protocol"]) for rule in policy["egress"] for port in rule["ports"]}
    assert out == {(53, "UDP"), (53, "TCP"), (443, "TCP")}
