"""Helm releases and the lifetime of their CRDs."""

import contextlib
import threading

import pytest

from rehearsal.core.model import InitFailedError, Properties, RefusalError
from rehearsal.kubernetes.charts import charts, find
from tests.rehearsal.kubernetes.harness import NAMESPACE, RELEASE, Rehearsed

KUEUE: Properties = {
    "chart": "oci://registry.k8s.io/kueue/charts/kueue", "version": "0.19.2", "name": "kueue",
    "namespace": "kueue-system", "createNamespace": True,
}  # fmt: skip
CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"


def test_a_release_brings_its_custom_kinds(rehearsed: Rehearsed) -> None:
    key, outputs = rehearsed.create(RELEASE, KUEUE, "kueue")
    assert key == "kueue-system/kueue"
    assert outputs["status"]["status"] == "deployed"
    assert outputs["status"]["appVersion"] == "v0.19.2"
    assert any("clusterqueues.kueue.x-k8s.io" in names for names in outputs["resourceNames"].values())
    queue, _ = rehearsed.create(CLUSTER_QUEUE, {"metadata": {"name": "q"}, "spec": {}}, "q")
    assert queue == "q"  # cluster-scoped
    local = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"
    metadata = {"name": "l", "namespace": "kueue-system"}
    assert (
        rehearsed.create(local, {"metadata": metadata, "spec": {"clusterQueue": "q"}}, "l")[0]
        == "kueue-system/l"
    )
    with pytest.raises(RefusalError, match="no matches for kind"):
        rehearsed.create("kubernetes:kueue.x-k8s.io/v1:ClusterQueue", {"metadata": {"name": "r"}}, "r")


def test_a_binding_to_a_role_of_a_release_grants_something(rehearsed: Rehearsed) -> None:
    rehearsed.create(RELEASE, KUEUE, "kueue")
    for role, warned in (("kueue-batch-user-role", False), ("kueue-batch-owner-role", True)):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subjects = [{"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}]
        given = {"metadata": {"name": role}, "roleRef": reference, "subjects": subjects}
        rehearsed.create("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", given, role)
        said = [text for severity, text in rehearsed.log if severity == "warning" and role in text]
        assert bool(said) == warned, said


def test_a_release_is_not_uninstalled_under_its_objects(rehearsed: Rehearsed) -> None:
    key, outputs = rehearsed.create(RELEASE, KUEUE, "kueue")
    queue, made = rehearsed.create(CLUSTER_QUEUE, {"metadata": {"name": "q"}, "spec": {}}, "q")
    with pytest.raises(RefusalError, match="ClusterQueue q"):
        rehearsed.cloud.delete(rehearsed.call(RELEASE, "kueue"), key, outputs)
    rehearsed.cloud.delete(rehearsed.call(CLUSTER_QUEUE, "q"), queue, made)
    rehearsed.cloud.delete(rehearsed.call(RELEASE, "kueue"), key, outputs)
    assert rehearsed.state.count("kubernetes") == 0
    with pytest.raises(RefusalError, match="no matches for kind"):
        rehearsed.create(CLUSTER_QUEUE, {"metadata": {"name": "q"}, "spec": {}}, "q")


def test_crds_outside_the_templates_stay_behind(rehearsed: Rehearsed) -> None:
    release = {**KUEUE, "chart": "oci://registry.k8s.io/jobset/charts/jobset", "name": "jobset"}
    key, outputs = rehearsed.create(RELEASE, release, "jobset")
    rehearsed.cloud.delete(rehearsed.call(RELEASE, "jobset"), key, outputs)
    made, _ = rehearsed.create(
        "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet", {"metadata": {"name": "j"}, "spec": {}}, "j"
    )
    assert made == "default/j"


def test_a_written_crd_serves_its_kind(rehearsed: Rehearsed) -> None:
    spec = {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    }  # fmt: skip
    rehearsed.create(CRD, {"metadata": {"name": "things.example.com"}, "spec": spec}, "crd")
    assert (
        rehearsed.create("kubernetes:example.com/v1:Thing", {"metadata": {"name": "t"}}, "t")[0]
        == "default/t"
    )


def test_refused_releases(rehearsed: Rehearsed) -> None:
    with pytest.raises(RefusalError, match='namespaces "none" not found'):
        rehearsed.create(RELEASE, {**KUEUE, "namespace": "none", "createNamespace": False}, "kueue")
    _, failures = rehearsed.cloud.check(rehearsed.call(RELEASE, "x"), None, {"chart": "kueue"})
    assert "not found" in failures[0].reason
    rehearsed.create(RELEASE, KUEUE, "kueue")
    with pytest.raises(RefusalError, match="re-use a name"):
        rehearsed.create(RELEASE, KUEUE, "other")
    with pytest.raises(RefusalError, match="exists and cannot be imported"):
        rehearsed.create(RELEASE, {**KUEUE, "name": "second"}, "other")


def test_an_unknown_chart_is_accepted_with_a_warning(rehearsed: Rehearsed) -> None:
    rehearsed.create(RELEASE, {**KUEUE, "chart": "oci://example.com/charts/mystery"}, "mystery")
    assert any(severity == "warning" and "mystery" in message for severity, message in rehearsed.log)
    # It may bring unknown kinds.
    rehearsed.create("kubernetes:example.com/v1:Mystery", {"metadata": {"name": "m"}}, "m")


def test_a_release_needs_a_node_that_takes_its_pods(rehearsed: Rehearsed) -> None:
    without_nodes(rehearsed)
    taint = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    rehearsed.node_group("gpu", "g5.12xlarge", taints=taint)
    with pytest.raises(InitFailedError, match="context deadline exceeded") as failed:
        rehearsed.create(RELEASE, {**KUEUE, "timeout": 1}, "kueue")
    assert "untolerated taint {nvidia.com/gpu: present}" in failed.value.reasons[-1]


def without_nodes(rehearsed: Rehearsed) -> None:
    for record in rehearsed.state.find(type="aws:eks/nodeGroup:NodeGroup"):
        rehearsed.state.remove(record)


def status(rehearsed: Rehearsed, key: str) -> tuple[str, int]:
    found = rehearsed.cloud.read(rehearsed.call(RELEASE, "kueue"), key, {})
    assert found
    return found[1]["status"]["status"], found[1]["status"]["revision"]


# tests/cluster/provider/test_releases.py shows the same with the real provider.
NOT_LIVE = (
    'Helm release "kueue-system/kueue" {}failed to initialize completely. Use Helm CLI to investigate: '
)
LATE = "context deadline exceeded"


def test_a_failed_release_is_upgraded_and_a_refresh_forgets_that_it_failed(rehearsed: Rehearsed) -> None:
    without_nodes(rehearsed)
    late, call = {**KUEUE, "timeout": 1}, rehearsed.call(RELEASE, "kueue")
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(RELEASE, late, "kueue")
    key, outputs = failed.value.id, failed.value.outputs
    assert failed.value.reasons[0].startswith(NOT_LIVE.format("was created, but "))
    assert failed.value.reasons[0].endswith(f"Error: Helm Release {key}: {LATE}")
    assert outputs["status"]["status"] == "failed"
    with pytest.raises(RefusalError, match="cannot re-use a name that is still in use"):
        rehearsed.create(RELEASE, late, "kueue")
    with pytest.raises(InitFailedError) as failed:
        rehearsed.cloud.update(call, key, outputs, late, preview=False)
    assert failed.value.reasons[0].startswith(NOT_LIVE.format(""))
    assert status(rehearsed, key) == ("failed", 2)
    rehearsed.node_group()
    rehearsed.cloud.update(call, key, outputs, late, preview=False)
    assert status(rehearsed, key) == ("deployed", 3)


def test_an_atomic_release_leaves_nothing_or_what_was_before(rehearsed: Rehearsed) -> None:
    without_nodes(rehearsed)
    atomic, call = {**KUEUE, "timeout": 1, "atomic": True}, rehearsed.call(RELEASE, "kueue")
    said = f"release kueue failed, and has been uninstalled due to atomic being set: {LATE}"
    with pytest.raises(RefusalError, match=said):
        rehearsed.create(RELEASE, atomic, "kueue")
    assert rehearsed.state.count("kubernetes") == 0
    group = rehearsed.node_group()
    key, outputs = rehearsed.create(RELEASE, atomic, "kueue")
    rehearsed.state.remove(group)
    with pytest.raises(
        InitFailedError, match=f"has been rolled back due to atomic being set: {LATE}"
    ) as failed:
        rehearsed.cloud.update(call, key, outputs, {**atomic, "version": "0.20.0"}, preview=False)
    assert failed.value.outputs["status"]["status"] == "failed"
    assert status(rehearsed, key) == ("deployed", 3)
    inputs, _ = rehearsed.cloud.read(call, key, {}) or ({}, {})
    assert inputs["version"] == KUEUE["version"]


def test_an_interrupted_install_has_failed_and_one_that_was_killed_is_pending(rehearsed: Rehearsed) -> None:
    without_nodes(rehearsed)
    threading.Timer(0.3, rehearsed.cancelled.set).start()
    with pytest.raises(InitFailedError, match="context canceled") as failed:
        rehearsed.create(RELEASE, KUEUE, "kueue")
    key, outputs = failed.value.id, failed.value.outputs
    rehearsed.cancelled.clear()

    def upgrade() -> None:
        rehearsed.cloud.update(rehearsed.call(RELEASE, "kueue"), key, outputs, KUEUE, preview=False)

    def killed() -> None:
        with contextlib.suppress(InitFailedError):
            upgrade()

    waiting = threading.Thread(target=killed)
    waiting.start()
    while status(rehearsed, key)[0] != "pending-upgrade":
        assert waiting.is_alive()
    # For the next engine this is the same as after a killed daemon.
    with pytest.raises(RefusalError, match="another operation") as refused:
        upgrade()
    assert "helm rollback kueue" in str(refused.value)
    rehearsed.cancelled.set()
    waiting.join()
    assert status(rehearsed, key) == ("failed", 2)
    rehearsed.cloud.delete(rehearsed.call(RELEASE, "kueue"), key, outputs)
    assert rehearsed.state.count("kubernetes") == 0


def test_names_are_generated_and_changes_detected(rehearsed: Rehearsed) -> None:
    call = rehearsed.call(RELEASE, "kueue")
    nameless = {name: value for name, value in KUEUE.items() if name != "name"}
    inputs, _ = rehearsed.cloud.check(call, None, nameless)
    assert inputs["name"].startswith("kueue-")
    assert rehearsed.cloud.diff(call, "", inputs, {}, {**inputs, "version": "0.20.0"}).replaces == ()
    assert rehearsed.cloud.diff(call, "", inputs, {}, {**inputs, "namespace": "x"}).replaces == ("namespace",)
    key, outputs = rehearsed.cloud.create(call, inputs, preview=False)
    outputs = rehearsed.cloud.update(call, key, outputs, {**inputs, "version": "0.20.0"}, preview=False)
    assert outputs["status"]["revision"] == 2
    assert "appVersion" not in outputs["status"]  # of that version nothing is known


def test_the_table_of_charts() -> None:
    assert find("nvidia/gpu-operator") is charts()["gpu-operator"]
    assert find("oci://registry.k8s.io/kueue/charts/kueue:0.19.2") is charts()["kueue"]
    assert find("mystery") is None
    for chart in charts().values():
        assert chart.crds_in in ("templates", "crds")
        assert all(crd.versions and "." in crd.group for crd in chart.crds)


def test_namespaces_made_by_helm_hold_objects(rehearsed: Rehearsed) -> None:
    rehearsed.create(RELEASE, KUEUE, "kueue")
    rehearsed.config_map("x", {}, namespace="kueue-system")
    rehearsed.create(NAMESPACE, {"metadata": {"name": "kueue-system-2"}}, "n")
    assert [one.id for one in rehearsed.state.find(name="x")] == ["kueue-system/x"]
