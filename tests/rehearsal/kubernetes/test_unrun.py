"""Objects whose pods do not run here are ready when a node would fit them; an Ingress gets an address."""

from typing import Any

import pytest

from rehearsal.core.model import InitFailedError, Properties
from rehearsal.kubernetes.api import awaits
from tests.rehearsal.kubernetes.harness import Rehearsed, web

POD, STATEFUL_SET = "kubernetes:core/v1:Pod", "kubernetes:apps/v1:StatefulSet"
INGRESS = "kubernetes:networking.k8s.io/v1:Ingress"
LARGE = {"pool": "large"}
NONE = "[Unschedulable] 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."


def pod(**spec: Any) -> Properties:
    spec = {"containers": [{"name": "main", "image": "python:3.11"}], **spec}
    return {"metadata": {"name": "p", "namespace": "lab"}, "spec": spec}


def stateful_set(**spec: Any) -> Properties:
    made = web("s")
    made["spec"] |= {"serviceName": "s", "replicas": 2}
    made["spec"]["template"]["spec"] |= spec
    return made


@pytest.fixture(autouse=True)
def _hurry(rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaits, "_STUCK_S", 0.3)
    rehearsed.namespace()


def test_a_pod_that_fits_a_node_is_ready(rehearsed: Rehearsed) -> None:
    assert rehearsed.create(POD, pod(), "p")[1]["status"]["phase"] == "Running"
    assert rehearsed.create(STATEFUL_SET, stateful_set(), "s")[1]["status"]["readyReplicas"] == 2


def test_a_pod_that_fits_no_node_is_not_ready(rehearsed: Rehearsed) -> None:
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(STATEFUL_SET, stateful_set(nodeSelector=LARGE), "s")
    assert failed.value.reasons[0].endswith("become live: 's' timed out waiting to be Ready")
    assert failed.value.reasons[1:] == ["0 out of 2 replicas succeeded readiness checks", NONE]
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(POD, pod(nodeSelector=LARGE), "p", timeout_s=None)
    assert "'p' would be" in failed.value.reasons[0]
    assert failed.value.reasons[1:] == [NONE]
    # A refresh finds it so, and an update waits again.
    call, key, outputs = rehearsed.call(POD, "p"), failed.value.id, failed.value.outputs
    with pytest.raises(InitFailedError) as unready:
        rehearsed.cloud.read(call, key, pod(nodeSelector=LARGE))
    assert unready.value.reasons == ["Resource 'p' was created but failed to initialize", NONE]
    rehearsed.node_group("large", labels=LARGE)
    outputs = rehearsed.cloud.update(call, key, outputs, pod(nodeSelector=LARGE), preview=False)
    assert outputs["status"]["phase"] == "Running"


def test_a_pod_with_skip_await_is_not_awaited(rehearsed: Rehearsed) -> None:
    unawaited = pod(nodeSelector=LARGE)
    unawaited["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}
    assert rehearsed.create(POD, unawaited, "p")[0] == "lab/p"


def test_an_ingress_gets_an_address(rehearsed: Rehearsed) -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    inputs = {"metadata": {"name": "i", "namespace": "lab"}, "spec": {"defaultBackend": backend}}
    _, outputs = rehearsed.create(INGRESS, inputs, "i")
    assert outputs["status"]["loadBalancer"]["ingress"][0]["hostname"].endswith(".elb.amazonaws.com")
