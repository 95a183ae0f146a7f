"""Objects: ids, names, outputs, refusals, and what replaces them."""

import threading
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN, InitFailedError, RefusalError
from tests.rehearsal.kubernetes.harness import (
    ACCOUNT_KIND,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    SECRET,
    SERVICE,
    Rehearsed,
    deployment,
    job,
    kubeconfig,
)

STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
VOLUME, CLAIM = "kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
IDLE = {"containers": [{"name": "c", "image": "busybox:1.37"}]}


def test_ids_scopes_and_what_the_server_sets(rehearsed: Rehearsed) -> None:
    key, outputs = rehearsed.create(NAMESPACE, {"metadata": {"name": "lab"}}, "lab")
    assert key == "lab"
    assert outputs["status"] == {"phase": "Active"}
    assert outputs["metadata"]["labels"] == {"kubernetes.io/metadata.name": "lab"}
    key, outputs = rehearsed.create(CONFIG_MAP, {"data": {"a": "1"}}, "settings")
    name = outputs["metadata"]["name"]
    assert key == f"default/{name}"
    assert name.startswith("settings-") and len(name) == len("settings-") + 8
    assert outputs["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert {"uid", "resourceVersion", "creationTimestamp"} <= outputs["metadata"].keys()
    assert (outputs["apiVersion"], outputs["kind"]) == ("v1", "ConfigMap")
    spec = {"ports": [{"port": 80}]}
    _, outputs = rehearsed.create(SERVICE, {"metadata": {"name": "web"}, "spec": spec}, "web")
    assert outputs["spec"]["clusterIP"].startswith("10.100.")
    assert outputs["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_generated_names_follow_the_seed_and_are_kept(rehearsed: Rehearsed) -> None:
    call = rehearsed.call(CONFIG_MAP, "x")
    first, _ = rehearsed.cloud.check(call, None, {"data": {}})
    again, _ = rehearsed.cloud.check(call, None, {"data": {}})
    assert first == again
    kept, _ = rehearsed.cloud.check(rehearsed.call(CONFIG_MAP, "y"), first, {"data": {"b": "2"}})
    assert kept["metadata"] == first["metadata"]


def test_property_names_and_types_are_checked(rehearsed: Rehearsed) -> None:
    inputs = {"metadata": {"name": "x"}, "spec": {"replica": 2, "template": {}, "selector": {}}}
    _, failures = rehearsed.cloud.check(rehearsed.call(DEPLOYMENT, "x"), None, inputs)
    assert any(failure.property == "spec.replica" and "replicas" in failure.reason for failure in failures)


def test_an_unknown_cluster_is_unreachable(rehearsed: Rehearsed) -> None:
    rehearsed.config = {"kubeconfig": kubeconfig("https://elsewhere.example")}
    with pytest.raises(RefusalError, match=r"cluster is unreachable.*elsewhere\.example"):
        rehearsed.create(NAMESPACE, {"metadata": {"name": "lab"}}, "lab")
    rehearsed.config = {}
    with pytest.raises(RefusalError, match="no kubeconfig"):
        rehearsed.create(NAMESPACE, {"metadata": {"name": "lab"}}, "lab")


def test_a_preview_of_a_cluster_that_does_not_exist_yet(rehearsed: Rehearsed) -> None:
    rehearsed.config = {"kubeconfig": UNKNOWN}
    key, outputs = rehearsed.cloud.create(
        rehearsed.call(NAMESPACE, "lab"), {"metadata": {"name": "lab"}}, preview=True
    )
    assert key == ""
    assert outputs["metadata"]["name"] == "lab"
    assert outputs["metadata"]["uid"] is UNKNOWN
    assert rehearsed.state.count("kubernetes") == 0


@pytest.mark.parametrize(
    ("token", "inputs", "message"),
    [
        (CONFIG_MAP, {"metadata": {"name": "x", "namespace": "no"}}, 'namespaces "no" not found'),
        (CONFIG_MAP, {"metadata": {"name": "Big_Name"}}, "RFC 1123 subdomain"),
        (SERVICE, {"metadata": {"name": "Web"}, "spec": {"ports": [{"port": 1}]}}, "RFC 1123 label"),
        (SERVICE, {"metadata": {"name": "web"}, "spec": {}}, "spec.ports: Required value"),
        (CONFIG_MAP, {"metadata": {"name": "x", "labels": {"team": "a b"}}}, "valid label"),
        (
            "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue",
            {"metadata": {"name": "q"}, "spec": {}},
            'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1beta2"',
        ),
        (JOB, job("x", {**IDLE, "restartPolicy": "Always"}, "default"), "restartPolicy: Required value"),
        (
            JOB,
            job("x", IDLE, "default", completionMode="Indexed", parallelism=2),
            "spec.completions: Required value",
        ),
        (JOB, job("x", {"containers": []}, "default"), "containers: Required value"),
        (
            DEPLOYMENT,
            deployment("x", IDLE, "default", selector={"matchLabels": {"app": "y"}}),
            "`selector` does not match template `labels`",
        ),
    ],
)
def test_refusals(rehearsed: Rehearsed, token: str, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusalError, match=message.replace(".", r"\.")):
        rehearsed.create(token, inputs, "x")
    assert rehearsed.state.count("kubernetes") == 0


def test_a_taken_name_is_refused_but_not_to_its_own_resource(rehearsed: Rehearsed) -> None:
    rehearsed.create(CONFIG_MAP, {"metadata": {"name": "x"}, "data": {"a": "1"}}, "one")
    with pytest.raises(RefusalError, match=r'AlreadyExists: configmaps "x" already exists'):
        rehearsed.create(CONFIG_MAP, {"metadata": {"name": "x"}}, "two")
    # An engine that was killed before it noted the first create down creates it again.
    _, outputs = rehearsed.create(CONFIG_MAP, {"metadata": {"name": "x"}, "data": {"a": "2"}}, "one")
    assert outputs["data"] == {"a": "2"}
    assert rehearsed.log[-1][0] == "warning"
    assert rehearsed.state.count("kubernetes") == 1


@pytest.mark.parametrize(
    ("token", "before", "after", "replaced", "first"),
    [
        (CONFIG_MAP, {"data": {"a": "1"}}, {"data": {"a": "2"}}, True, True),
        (SECRET, {"stringData": {"a": "1"}}, {"stringData": {"a": "1"}}, None, False),
        (SECRET, {"stringData": {"a": "1"}}, {"stringData": {"a": "2"}}, True, True),
        (
            ACCOUNT_KIND,
            {"automountServiceAccountToken": True},
            {"automountServiceAccountToken": False},
            False,
            False,
        ),
        (STORAGE_CLASS, {"provisioner": "a.b"}, {"provisioner": "c.d"}, True, True),
        (
            BINDING,
            {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
            {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}},
            True,
            True,
        ),
    ],
)
def test_what_a_change_does(
    rehearsed: Rehearsed, token: str, before: Any, after: Any, replaced: bool | None, *, first: bool
) -> None:
    """`replaced` None: no change at all; `first`: the old object goes before the new one comes."""
    metadata = {"metadata": {"name": "x"}}
    key, outputs = rehearsed.create(token, {**metadata, **before}, "x")
    found = rehearsed.cloud.diff(
        rehearsed.call(token, "x"), key, {**metadata, **before}, outputs, {**metadata, **after}
    )
    assert bool(found.changed) is (replaced is not None)
    assert bool(found.replaces) is bool(replaced)
    assert found.delete_before_replace is first


def test_replacement_of_generated_names_and_of_mutable_maps(rehearsed: Rehearsed) -> None:
    call = rehearsed.call(CONFIG_MAP, "x")
    inputs, _ = rehearsed.cloud.check(call, None, {"data": {"a": "1"}})
    key, outputs = rehearsed.cloud.create(call, inputs, preview=False)
    new = {**inputs, "data": {"a": "2"}}
    found = rehearsed.cloud.diff(call, key, inputs, outputs, new)
    assert found.replaces == ("data.a",) and not found.delete_before_replace
    rehearsed.config["enableConfigMapMutable"] = "true"
    assert rehearsed.cloud.diff(call, key, inputs, outputs, new).replaces == ()


def test_template_changes_replace_jobs_and_roll_out_deployments(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    other = {"containers": [{"name": "c", "image": "busybox:1.38"}]}
    for token, make, replaced in ((JOB, job, True), (DEPLOYMENT, deployment, False)):
        old, new = make("x", IDLE), make("x", other)
        key, outputs = rehearsed.create(token, old, "x")
        found = rehearsed.cloud.diff(rehearsed.call(token, "x"), key, old, outputs, new)
        assert "spec.template.spec.containers[0].image" in found.changed
        assert bool(found.replaces) is replaced
    outputs = rehearsed.cloud.update(rehearsed.call(DEPLOYMENT, "x"), key, outputs, new, preview=False)
    assert outputs["metadata"]["generation"] == 2
    assert outputs["status"]["readyReplicas"] == 1


def test_a_claim_binds_to_its_volume_or_waits(rehearsed: Rehearsed) -> None:
    csi = {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1"}
    size = {"storage": "1200Gi"}
    volume = {"capacity": size, "accessModes": ["ReadWriteMany"], "csi": csi, "storageClassName": ""}
    claim = {
        "accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "volumeName": "data",
        "storageClassName": "",
    }  # fmt: skip
    # The provider ignores custom timeouts of claims, so the `up` is interrupted.
    threading.Timer(0.5, rehearsed.cancelled.set).start()
    with pytest.raises(InitFailedError, match='persistentvolume "data" not found'):
        rehearsed.create(CLAIM, {"metadata": {"name": "data"}, "spec": claim}, "claim")
    rehearsed.cancelled.clear()
    rehearsed.create(VOLUME, {"metadata": {"name": "data"}, "spec": volume}, "volume")
    _, outputs = rehearsed.create(CLAIM, {"metadata": {"name": "data"}, "spec": claim}, "claim")
    assert outputs["status"]["phase"] == "Bound"


def test_a_binding_to_a_missing_role_is_warned_about(rehearsed: Rehearsed) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "missing"}
    rehearsed.create(BINDING, {"metadata": {"name": "b"}, "roleRef": role}, "b")
    assert any("missing" in message and severity == "warning" for severity, message in rehearsed.log)


def test_reading_a_deleted_object(rehearsed: Rehearsed) -> None:
    key, outputs = rehearsed.create(CONFIG_MAP, {"metadata": {"name": "x"}, "data": {}}, "x")
    call = rehearsed.call(CONFIG_MAP, "x")
    found = rehearsed.cloud.read(call, key, {})
    assert found is not None and found[1] == outputs
    rehearsed.cloud.delete(call, key, outputs)
    rehearsed.cloud.delete(call, key, outputs)
    assert rehearsed.cloud.read(call, key, {}) is None
