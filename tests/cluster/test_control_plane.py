"""The control plane is a real one: it defaults, validates, admits, schedules, collects garbage, and ends."""

import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running
from rehearsal.controlplane.nodes import EFA, GPU, KwokPool, add_nodes
from rehearsal.controlplane.processes import StartError
from tests.cluster.waiting import eventually


def job(namespace: str, name: str, **pod: object) -> Object:
    container = {"name": "main", "image": "example.com/none:1", "command": ["true"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {"trainstack.dev/seconds": "1s"}},
                "spec": {"restartPolicy": "Never", "containers": [container], **pod},
            },
        },
    }


def test_a_job_runs_on_a_node_of_the_catalog(api: KubernetesApi, namespace: str) -> None:
    pool = KwokPool("a100", "p4d.24xlarge", 1, labels={"trainstack.dev/pool": "a100"})
    add_nodes(api, [pool])
    try:
        node = api.get("v1", "Node", "a100-0")
        assert node["status"]["allocatable"][GPU] == "8"
        assert node["status"]["allocatable"][EFA] == "4"
        api.create(job(namespace, "hello", nodeSelector={"trainstack.dev/pool": "a100"}))

        def completed() -> bool:
            conditions = api.get("batch/v1", "Job", "hello", namespace)["status"].get("conditions", [])
            return any(row["type"] == "Complete" and row["status"] == "True" for row in conditions)

        eventually(completed)
        (pod,) = api.list("v1", "Pod", namespace)
        assert pod["spec"]["nodeName"] == "a100-0"
        api.delete("batch/v1", "Job", "hello", namespace)
        eventually(lambda: api.list("v1", "Pod", namespace) == [])
    finally:
        api.delete("v1", "Node", "a100-0")


def test_a_refusal_names_the_field(api: KubernetesApi, namespace: str) -> None:
    body = job(namespace, "hello")
    body["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    with pytest.raises(ApiError) as refusal:
        api.create(body)
    assert refusal.value.reason == "Invalid"
    assert refusal.value.fields == ("spec.template.spec.restartPolicy",)


def test_a_job_in_a_managed_namespace_is_suspended_by_the_webhook_of_kueue(
    api: KubernetesApi, namespace: str
) -> None:
    patch: Object = {"metadata": {"labels": {"trainstack.dev/queueing": "required"}}}
    api.patch("v1", "Namespace", namespace, patch)
    # Kueue's webhook reads namespaces from its cache, which learns of the label a moment later.
    eventually(lambda: api.create(job(namespace, "hello"), dry_run=True)["spec"]["suspend"] is True)
    assert api.list("batch/v1", "Job", namespace) == []


def test_a_killed_control_plane_leaves_no_process_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    order = ControlPlaneOptions(tmp_path / "run")

    with running(order) as plane:
        plane.api().create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
        children = psutil.Process(plane.process.pid).children(recursive=True)
        assert {child.name() for child in children} >= {"etcd", "kube-apiserver", "kube-scheduler", "kwok"}
        plane.process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
    with running(order) as again:
        found = again.api().list("v1", "Namespace")
        assert "mine" not in {row["metadata"]["name"] for row in found}


def test_one_that_is_kept_goes_on_at_its_address_with_its_objects_and_its_addons(tmp_path: Path) -> None:
    order = ControlPlaneOptions(tmp_path / "run", keep=True)
    kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "jobsets.jobset.x-k8s.io")

    with running(order) as plane:
        plane.api().create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
        plane.install("jobset", {})
        assert plane.api().find(*kind)
        before = plane.access
    with running(replace(order, addons={"jobset": {}})) as again:
        assert again.access == before
        assert again.api().get("v1", "Namespace", "mine")
        with pytest.raises(StartError, match="helm cannot render"):
            again.install("jobset", {"fullnameOverride": ["no", "text"]})
        again.remove("jobset")
        webhooks = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
        eventually(lambda: not again.api().list(*webhooks))
        # As with Helm, which does not delete definitions of the folder `crds`.
        assert again.api().find(*kind)


def test_the_users_own_kubeconfig_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("not: even yaml: {")
    monkeypatch.setenv("KUBECONFIG", str(theirs))
    with running(ControlPlaneOptions(tmp_path / "run")) as plane:
        assert plane.api().get("v1", "Namespace", "default")["metadata"]["name"] == "default"
    assert theirs.read_text() == "not: even yaml: {"


def test_a_process_that_does_not_start_is_named_with_its_log(tmp_path: Path) -> None:
    config = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nnonsense: true\n"
    kueue = {"managerConfig": {"controllerManagerConfigYaml": config}}
    order = ControlPlaneOptions(tmp_path / "run", addons={"kueue": kueue})
    with pytest.raises(StartError, match=r"(?s)kueue .* 1\b.*nonsense"), running(order):
        pass
