"""Helm on a real API server: definitions that it did not create, and an upgrade that does not start."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.charts import charts
from components.kubernetes.training import trainer
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.nodes import KwokPool, pool_nodes

pytestmark = [pytest.mark.more, pytest.mark.timeout(600)]

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with one node and without controllers of ours."""
    with running(ControlPlaneOptions(tmp_path_factory.mktemp("helm") / "run")) as plane:
        for body in pool_nodes(KwokPool("system", "p4d.24xlarge", 1)):
            plane.api().create(body)
        yield plane


def helm(
    plane: ControlPlane, verb: str, name: str, chart: Path, values: Mapping[str, Any], *more: str
) -> Any:
    """One command of Helm, with the namespace and the values of a stack."""
    found = binaries.ready()
    assert found
    return subprocess.run(
        [found["helm"], verb, name, chart, "--namespace", charts()[name].namespace, "--values", "-", *more],
        input=json.dumps(dict(values)), env={"KUBECONFIG": str(plane.kubeconfig), "HOME": str(plane.home)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def other(name: str) -> Path:
    """Chart of another release."""
    found = binaries.other(name)
    if found is None:
        pytest.skip(f"{name} is not built: `python -m rehearsal.controlplane.binaries --others` builds it")
    return found[1]


def pods(api: KubernetesApi, namespace: str) -> set[str]:
    """Identities of the ready pods of a namespace."""
    found = set()
    for pod in api.list("v1", "Pod", namespace):
        rows = (pod.get("status") or {}).get("conditions") or ()
        if any(row["type"] == "Ready" and row["status"] == "True" for row in rows):
            found.add(pod["metadata"]["uid"])
    return found


def test_definitions_that_moved_to_templates_are_left_out_and_else_refused(empty: ControlPlane) -> None:
    (chart,), following = binaries.files_of(trainer.CHART), other("kubeflow-trainer-next")
    done = helm(empty, "install", trainer.CHART, chart, trainer.VALUES, "--create-namespace")
    assert done.returncode == 0, done.stderr
    refused = helm(empty, "upgrade", trainer.CHART, following, trainer.VALUES)
    assert refused.returncode != 0 and "invalid ownership metadata" in refused.stderr
    before = empty.api().get(*CRD, "trainjobs.trainer.kubeflow.org")["metadata"]["resourceVersion"]
    values = {**trainer.VALUES, "crds": {"enabled": False}}
    done = helm(empty, "upgrade", trainer.CHART, following, values)
    assert done.returncode == 0, done.stderr
    # Those of the older chart: only the Job before the chart changes them.
    after = empty.api().get(*CRD, "trainjobs.trainer.kubeflow.org")["metadata"]["resourceVersion"]
    assert after == before


def test_an_upgrade_that_does_not_start_leaves_the_older_pods_and_is_repeated(
    empty: ControlPlane,
) -> None:
    name, space, api = "jobset", charts()["jobset"].namespace, empty.api()
    waits = ("--wait", "--timeout", "60s")
    done = helm(
        empty, "install", name, other("jobset-before"), trainer.JOBSET_VALUES, "--create-namespace", *waits
    )
    assert done.returncode == 0, done.stderr
    before = pods(api, space)
    assert len(before) == 2
    (chart,) = binaries.files_of(name)
    nowhere = {"controller": {**trainer.JOBSET_VALUES["controller"], "nodeSelector": {"no": "node"}}}
    failed = helm(empty, "upgrade", name, chart, nowhere, "--atomic", "--timeout", "10s")
    assert failed.returncode != 0 and "rolled back" in failed.stderr, failed.stderr
    assert pods(api, space) == before
    done = helm(empty, "upgrade", name, chart, trainer.JOBSET_VALUES, "--atomic", "--timeout", "60s")
    assert done.returncode == 0, done.stderr
    now = pods(api, space)
    assert now and not now & before
