"""Definitions of charts in a real API server: installed, upgraded, refused where data would be lost."""

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from agents.waiting.definitions import read
from components.kubernetes.definitions.install import FILE
from components.kubernetes.definitions.schemas import packed, schemas
from components.kubernetes.training import trainer
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.upgrades.installing import installer
from tests.cluster.waiting import eventually
from tools.definitions import of_folder

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
GROUP = "kueue.x-k8s.io"
JOB_SETS, QUEUES = "jobsets.jobset.x-k8s.io", f"clusterqueues.{GROUP}"
CLASSES = f"workloadpriorityclasses.{GROUP}"
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")


def shipped(chart: str, folder: Path) -> dict[str, Any]:
    """The definitions of a chart that stacks install."""
    path = folder / FILE
    path.write_bytes(packed(chart))
    return dict(read(path))


def properties(definition: Object) -> dict[str, Any]:
    """The fields of `spec` of a kind's one version."""
    (version,) = definition["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


def job_set(name: str) -> Object:
    """A JobSet that never starts."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none:1"}]}
    job = {"name": "node", "replicas": 1, "template": {"spec": {"template": {"spec": pod}}}}
    spec = {"suspend": True, "replicatedJobs": [job]}
    return {"apiVersion": JOB_SET[0], "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def test_a_chart_does_not_upgrade_its_definitions_and_the_job_before_it_does(
    plane: ControlPlane, api: KubernetesApi, namespace: str, tmp_path: Path
) -> None:
    wanted = shipped("jobset", tmp_path)[JOB_SETS]
    older = copy.deepcopy(wanted)
    del properties(older)["ttlSecondsAfterFinished"]
    api.replace({**older, "metadata": api.get(*CRD, JOB_SETS)["metadata"]})
    api.create({**job_set("before"), "metadata": {"name": "before", "namespace": namespace}})

    plane.install("jobset", trainer.JOBSET_VALUES)
    assert "ttlSecondsAfterFinished" not in properties(api.get(*CRD, JOB_SETS))

    with installer(api, "jobset", tmp_path) as job:
        code, message = job.run()
        assert code == 0, message
        assert "ttlSecondsAfterFinished" in properties(api.get(*CRD, JOB_SETS))
        first = api.get(*CRD, JOB_SETS)["metadata"]["resourceVersion"]
        assert job.run()[0] == 0
        # The API server writes nothing when nothing differs.
        assert api.get(*CRD, JOB_SETS)["metadata"]["resourceVersion"] == first
    assert api.get(*JOB_SET, "before", namespace)["spec"]["suspend"] is True


def test_a_definition_of_others_stays_theirs_and_no_other_chart_is_touched(
    api: KubernetesApi, tmp_path: Path
) -> None:
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    current = api.get(*CRD, JOB_SETS)
    api.replace({**current, "metadata": {**current["metadata"], "labels": labels}})
    others = {row["metadata"]["name"]: row["metadata"]["resourceVersion"] for row in api.list(*CRD)}
    with installer(api, "jobset", tmp_path) as job:
        assert job.run()[0] == 0
        # Only the names of its chart.
        code, message = job.run(names='["workloads.kueue.x-k8s.io"]', seconds=1)
        assert code == 1 and "403" in message and "workloads.kueue.x-k8s.io" in message
    assert api.get(*CRD, JOB_SETS)["metadata"]["labels"] == labels
    after = {row["metadata"]["name"]: row["metadata"]["resourceVersion"] for row in api.list(*CRD)}
    assert {name for name in others if others[name] != after[name]} <= {JOB_SETS}


@pytest.mark.more
def test_a_new_cluster_gets_all_kinds_and_they_are_served(api: KubernetesApi, tmp_path: Path) -> None:
    chart = "kube-prometheus-stack"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}
    api.apply(namespace)
    try:
        with installer(api, chart, tmp_path) as job:
            code, message = job.run()
            assert code == 0, message
            names = schemas()[chart].names
            assert len(names) == 10
            for name in names:
                rows = api.get(*CRD, name)["status"]["conditions"]
                assert {row["type"] for row in rows if row["status"] == "True"} >= {"Established"}
    finally:
        for name in schemas()[chart].names:
            api.delete(*CRD, name)
        api.delete("v1", "Namespace", "monitoring")


def stores(definition: Object, version: str) -> Object:
    """The definition, with another version stored."""
    changed = copy.deepcopy(definition)
    for row in changed["spec"]["versions"]:
        row["storage"] = row["name"] == version
    return changed


def without(definition: Object, version: str) -> Object:
    """The definition without a version, as in the release that drops it."""
    changed = copy.deepcopy(definition)
    changed["spec"]["versions"] = [row for row in changed["spec"]["versions"] if row["name"] != version]
    return changed


def store(api: KubernetesApi, name: str, version: str) -> None:
    """Let the API server store another version of a kind."""
    api.replace(stores(api.get(*CRD, name), version))


def forget(api: KubernetesApi, name: str) -> None:
    """The kind as in a new cluster: the API server never stored another version."""
    store(api, name, "v1beta2")
    latest = api.get(*CRD, name)
    status = {**latest["status"], "storedVersions": ["v1beta2"]}
    api.replace({**latest, "status": status}, subresource="status")


def stored_as(plane: ControlPlane, name: str) -> str:
    """The version in which etcd has a WorkloadPriorityClass, by etcd's own gateway for JSON."""
    servers = psutil.Process(plane.process.pid).children(recursive=True)
    (words,) = [one.cmdline() for one in servers if one.name() == "kube-apiserver"]
    options = dict(word.removeprefix("--etcd-").split("=", 1) for word in words if word.startswith("--etcd-"))
    key = base64.b64encode(f"/registry/{GROUP}/workloadpriorityclasses/{name}".encode()).decode()
    answer = requests.post(
        f"{options['servers']}/v3/kv/range",
        json={"key": key},
        cert=(options["certfile"], options["keyfile"]),
        verify=options["cafile"],
        timeout=30,
    )
    (found,) = answer.json()["kvs"]
    return str(json.loads(base64.b64decode(found["value"]))["apiVersion"])


@pytest.fixture
def old(plane: ControlPlane, api: KubernetesApi) -> Iterator[str]:
    """The name of an object that is stored as v1beta1. No controller writes objects of its kind."""
    kind = (f"{GROUP}/v1beta1", "WorkloadPriorityClass")
    made: list[str] = []

    def stored() -> str:
        # The API server stores the other version a moment after the definition has changed. Each attempt has
        # a name of its own: a deleted object exists until the garbage collector has seen it.
        name = f"old-{len(made)}"
        made.append(name)
        api.create({"apiVersion": kind[0], "kind": kind[1], "value": 1, "metadata": {"name": name}})
        return name if stored_as(plane, name) == kind[0] else ""

    try:
        store(api, CLASSES, "v1beta1")
        yield eventually(stored, "it is stored as v1beta1")
    finally:
        for name in made:
            api.delete(*kind, name)
        forget(api, CLASSES)


def test_objects_are_stored_anew_before_a_release_drops_their_version(
    plane: ControlPlane, api: KubernetesApi, old: str, tmp_path: Path
) -> None:
    store(api, CLASSES, "v1beta2")
    current = api.get(*CRD, CLASSES)
    assert set(current["status"]["storedVersions"]) == {"v1beta1", "v1beta2"}
    with pytest.raises(ApiError, match=r"missing from spec\.versions"):
        api.replace(without(current, "v1beta1"), dry_run=True)
    assert stored_as(plane, old) == f"{GROUP}/v1beta1"
    with installer(api, "kueue", tmp_path) as job:
        code, message = job.run(version="0.20.8")
        assert code == 0, message
    assert stored_as(plane, old) == f"{GROUP}/v1beta2"
    current = api.get(*CRD, CLASSES)
    assert current["status"]["storedVersions"] == ["v1beta2"]
    api.replace(without(current, "v1beta1"), dry_run=True)


def test_an_upgrade_that_skips_a_schema_is_refused_with_the_path(api: KubernetesApi, tmp_path: Path) -> None:
    store(api, QUEUES, "v1beta1")
    try:
        with installer(api, "kueue", tmp_path) as job:
            code, message = job.run(version="0.20.8")
            assert code == 1
            assert QUEUES in message and "v1beta1" in message and "0.19.2, then 0.20.8" in message
            assert job.run()[0] == 0  # to the pinned version, which serves both
    finally:
        forget(api, QUEUES)


@pytest.mark.parametrize("chart", ["jobset", "kubeflow-trainer"])
def test_packed_definitions_are_those_of_the_pinned_chart(chart: str, tmp_path: Path) -> None:
    (source,) = binaries.files_of(chart)
    assert [*shipped(chart, tmp_path).values()] == of_folder(source / "crds")
    assert [*shipped(chart, tmp_path)] == sorted(schemas()[chart].names)


def test_the_table_has_the_kinds_and_versions_of_the_pinned_kueue(api: KubernetesApi) -> None:
    row = schemas()["kueue"]
    found = [one for one in api.list(*CRD) if one["spec"]["group"] == GROUP]
    assert {one["metadata"]["name"] for one in found} == set(row.names)
    for definition in found:
        versions = definition["spec"]["versions"]
        line = next(line for line in row.lines if line.through == "0.19.2")
        assert {one["name"] for one in versions if one["served"]} == set(line.served)
        assert {one["name"] for one in versions if one["storage"]} == {line.stored}
