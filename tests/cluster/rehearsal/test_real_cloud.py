"""The rehearsal's provider with a real control plane: responses of the API server and its controllers."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from rehearsal.core.model import InitFailedError, RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.kubernetes import ambient
from rehearsal.realcluster.cloud import RealKubernetesCloud
from tests.cluster.waiting import eventually
from tests.rehearsal.driver import CACHE, Driver

NAMESPACE, CONFIG_MAP, JOB = "core/v1:Namespace", "core/v1:ConfigMap", "batch/v1:Job"
DEPLOYMENT, SERVICE = "apps/v1:Deployment", "core/v1:Service"
WEB = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ["HOSTNAME"].encode())
    def log_message(self, *_): pass
http.server.HTTPServer((os.environ["HOST"], 8080), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real") / "home"


@pytest.fixture(scope="module")
def cloud(home: Path) -> Iterator[RealKubernetesCloud]:
    home.mkdir()
    state, schemas = State(home / "state.sqlite", daemon=True), Schemas("kubernetes", CACHE)
    cloud = RealKubernetesCloud(state, schemas, home)
    yield cloud
    cloud.stop()
    schemas.close()
    state.close()


@pytest.fixture(scope="module")
def driver(cloud: RealKubernetesCloud) -> Driver:
    return Driver("kubernetes", cloud.state, cloud, {"kubeconfig": ambient.KUBECONFIG})


@pytest.fixture
def lab(driver: Driver, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what the test made in it is removed."""
    name = request.node.name.replace("_", "-")[:50].strip("-")
    driver.create(NAMESPACE, name, metadata={"name": name})
    yield name
    for made in reversed(list(driver.made)):
        driver.delete(made)


def script_pod(script: str, **container: Any) -> dict[str, Any]:
    return {
        "containers": [{
            "name": "main", "image": "python:3.12", "command": ["python", "/code/main.py"],
            "volumeMounts": [{"name": "code", "mountPath": "/code"}], **container,
        }],
        "volumes": [{"name": "code", "configMap": {"name": script}}],
    }  # fmt: skip


def job(name: str, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", **pod}}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": template},
    }


def test_a_job_runs_as_a_process_and_the_job_controller_completes_it(
    cloud: RealKubernetesCloud, driver: Driver, lab: str
) -> None:
    code = "import os, pathlib; pathlib.Path(os.environ['SAY']).write_text('said')"
    driver.create(CONFIG_MAP, "code", metadata={"name": "code", "namespace": lab}, data={"main.py": code})
    say = {"name": "SAY", "value": "/dev/termination-log"}
    outputs = driver.create(JOB, "job", **job("hello", lab, script_pod("code", env=[say])))
    assert outputs["status"]["succeeded"] == 1
    assert outputs["spec"]["completionMode"] == "NonIndexed"  # a default of the real API server
    (pod,) = cloud.planes.of(ambient.RECORD).api().list("v1", "Pod", lab)
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["message"], pod["status"]["phase"]) == (0, "said", "Succeeded")


@pytest.mark.more
def test_a_killed_api_server_is_started_again_while_a_job_runs_and_is_waited_for(
    cloud: RealKubernetesCloud, driver: Driver, lab: str
) -> None:
    code = "import time; time.sleep(6)"
    driver.create(CONFIG_MAP, "code", metadata={"name": "code", "namespace": lab}, data={"main.py": code})

    def phases() -> list[str]:
        return [row["phase"] for row in cloud.live_workloads() if row["namespace"] == lab]

    with ThreadPoolExecutor(1) as threads:
        waited = threads.submit(driver.create, JOB, "job", **job("long", lab, script_pod("code")))
        eventually(lambda: phases() == ["Running"], "the Job runs")
        (before,) = cloud.planes.of(ambient.RECORD).describe()["pids"]
        psutil.Process(before).kill()
        outputs = waited.result()
    assert any("retrying" in text for text in driver.said)
    assert outputs["status"]["succeeded"] == 1
    assert outputs["status"].get("failed", 0) == 0, "the pods run on"
    assert cloud.planes.of(ambient.RECORD).describe()["pids"] != [before]


def test_a_failed_job_is_kept_with_its_reason(driver: Driver, lab: str) -> None:
    driver.create(
        CONFIG_MAP,
        "code",
        metadata={"name": "code", "namespace": lab},
        data={"main.py": "raise SystemExit(3)"},
    )
    with pytest.raises(InitFailedError) as failed:
        driver.create(JOB, "job", **job("broken", lab, script_pod("code")))
    assert failed.value.id == f"{lab}/broken"
    assert any("BackoffLimitExceeded" in reason for reason in failed.value.reasons)
    assert any("exit code 3" in reason for reason in failed.value.reasons)


def test_the_api_server_refuses_in_the_preview(driver: Driver, lab: str) -> None:
    wrong = job("wrong", lab, {"containers": [{"name": "Main_", "image": "x"}]})
    with pytest.raises(RefusalError, match=r"spec\.template\.spec\.containers\[0\]\.name"):
        driver.create(JOB, "wrong", preview=True, **wrong)
    with pytest.raises(RefusalError, match=r"Invalid"):
        driver.create(JOB, "wrong", **wrong)
    assert driver.state.find(name="wrong") == []


def test_pod_security_keeps_pods_out(driver: Driver, lab: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    driver.update(lab, metadata={"name": lab, "labels": labels})
    pod = {"containers": [{"name": "main", "image": "x", "securityContext": {"privileged": True}}]}
    with pytest.raises(RefusalError, match="violates PodSecurity"):
        driver.create("core/v1:Pod", "pod", metadata={"name": "pod", "namespace": lab}, spec=pod)


@pytest.mark.more
def test_a_deployment_runs_its_replicas_and_rolls_out(
    cloud: RealKubernetesCloud, driver: Driver, lab: str
) -> None:
    driver.create(CONFIG_MAP, "code", metadata={"name": "code", "namespace": lab}, data={"main.py": WEB})
    host = {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    probe = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    pod = script_pod("code", ports=[{"containerPort": 8080}], env=[host], readinessProbe=probe)
    labels = {"app": "web"}

    def web(**extra: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {**labels, **extra}}, "spec": pod}
        return {
            "metadata": {"name": "web", "namespace": lab},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        }

    outputs = driver.create(DEPLOYMENT, "web", **web())
    assert outputs["status"]["readyReplicas"] == 2
    assert driver.diff("web", **web()).changed == ()
    outputs = driver.update("web", **web(version="2"))
    assert outputs["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    rows = [row for row in cloud.live_workloads() if row["namespace"] == lab]
    assert {(row["kind"], row["name"]) for row in rows} == {("Deployment", "web")}
    deadline = time.monotonic() + 10
    while sum(row["ready"] for row in rows) != 2 or len(rows) != 2:  # the old pods end
        assert time.monotonic() < deadline
        rows = [row for row in cloud.live_workloads() if row["namespace"] == lab]
