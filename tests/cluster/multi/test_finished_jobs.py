"""Finished jobs with a time after which they are deleted are not sent again."""

import uuid
from collections.abc import Iterator

import pytest

from rehearsal.controlplane.api import Object
from tests.cluster.multi.fleet import Fleet
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]


@pytest.fixture(autouse=True)
def _empty(clusters: Fleet) -> Iterator[None]:
    yield
    clusters.finish(*list(clusters.jobs))


def test_only_the_manager_deletes_a_finished_job(clusters: Fleet) -> None:
    name = f"job-{uuid.uuid4().hex[:6]}"
    namespace = clusters.manager.namespaces["Research"]
    asked = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    resources = {"requests": asked, "limits": asked}
    container = {"name": "main", "image": "example.com/none:1", "resources": resources}
    template = {
        "metadata": {"annotations": {"trainstack.dev/seconds": "10s"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    spec = {"ttlSecondsAfterFinished": 3600, "backoffLimit": 0, "template": template}
    body: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    clusters.manager.create(namespace, body)
    clusters.jobs.append(name)

    def sent() -> bool:
        found = [lab.api.find("batch/v1", "Job", name, namespace) for lab in clusters.workers.values()]
        return any(row and "ttlSecondsAfterFinished" not in row["spec"] for row in found)

    eventually(sent, lambda: clusters.state(name), 30)
    eventually(lambda: (clusters.manager.job(name).get("status") or {}).get("succeeded") == 1, "it ended", 90)
    assert clusters.manager.job(name)["spec"]["ttlSecondsAfterFinished"] == 3600
