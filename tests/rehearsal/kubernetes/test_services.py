"""Services lead to ready pods, by name and by address."""

import urllib.request

import pytest

from tests.rehearsal.kubernetes.harness import DEPLOYMENT, JOB, SERVICE, WEB, Rehearsed, job, script_pod, web


def test_services_lead_to_the_target_port_of_a_ready_pod(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    rehearsed.create(DEPLOYMENT, web(), "web")
    ports = [{"port": 80, "targetPort": "http"}]
    service = {
        "metadata": {"name": "web", "namespace": "lab"},
        "spec": {"selector": {"app": "web"}, "ports": ports},
    }
    rehearsed.create(SERVICE, service, "svc")
    client = (
        "import os, urllib.request\n"
        "for name in 'FULL', 'SHORT', 'BARE':\n"
        "    print(name, urllib.request.urlopen(os.environ[name]).read().decode())\n"
    )
    rehearsed.config_map("client", {"main.py": client})
    env = [
        {"name": "FULL", "value": "http://web.lab.svc.cluster.local:80/x"},
        {"name": "SHORT", "value": "http://web.lab:80"},
        {"name": "BARE", "value": "http://web:80/"},
    ]
    rehearsed.create(JOB, job("client", script_pod("client", container={"env": env})), "client")
    log = next((rehearsed.home / "logs" / "lab").glob("client-*.log")).read_text()
    assert [line.split()[0] for line in log.splitlines()] == ["FULL", "SHORT", "BARE"]


def test_a_service_has_its_address_before_it_exists_and_spreads_connections(rehearsed: Rehearsed) -> None:
    """A Deployment gets the address of a Service that is made after it: a program may create both at once."""
    rehearsed.namespace()
    script = WEB.replace('os.environ["HOSTNAME"]', '(os.environ["HOSTNAME"] + " " + os.environ["HOSTS"])')
    rehearsed.config_map("web", {"main.py": script})
    inputs = web(replicas=2)
    hosts = {"name": "HOSTS", "value": "web.lab.svc.cluster.local:8080,localhost"}
    inputs["spec"]["template"]["spec"]["containers"][0]["env"].append(hosts)
    rehearsed.create(DEPLOYMENT, inputs, "web")
    spec = {"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": "http"}]}
    service, _ = rehearsed.create(
        SERVICE, {"metadata": {"name": "web", "namespace": "lab"}, "spec": spec}, "s"
    )
    (url,) = {url for row in rehearsed.cloud.live_workloads() for url in row["urls"]}
    answers = []
    for _ in range(4):
        with urllib.request.urlopen(url) as answer:
            answers.append(answer.read().decode().split())
    assert len({pod for pod, _ in answers}) == 2
    assert {hosts for _, hosts in answers} == {url.removeprefix("http://") + ",localhost"}
    rehearsed.cloud.delete(rehearsed.call(SERVICE, "s"), service, {})
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)
