"""Holders of GPUs, from objects of the API server."""

from typing import Any

import pytest

from agents.idle_gpus.holders import bare, holders, seconds
from agents.shared.times import stamp

NOW = "2026-11-25T20:00:00Z"


def pod(name: str = "notebook", **more: Any) -> dict[str, Any]:
    head = {"namespace": "team-vision", "name": name, "uid": f"uid-{name}", **more.pop("metadata", {})}
    spec = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    status = {
        "phase": "Running",
        "startTime": "2026-11-25T19:00:00Z",
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": NOW}}}],
    }
    return {"metadata": head, "spec": {**spec, **more.pop("spec", {})}, "status": {**status, **more}}


def controlled(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def test_a_pod_alone_is_its_own_holder() -> None:
    (found,) = holders([pod()], [])
    assert (found.kind, found.namespace, found.name) == ("Pod", "team-vision", "notebook")
    (only,) = found.pods
    assert (only.gpus, only.started, only.stop_at, only.owner) == (2, seconds(NOW), None, "team-vision")


@pytest.mark.parametrize("kind", ["Job", "StatefulSet", "ReplicaSet"])
def test_pods_of_a_controller_are_one_holder(kind: str) -> None:
    pods = [pod(f"run-{index}", metadata=controlled(kind, "run")) for index in range(3)]
    (found,) = holders(pods, [])
    assert (found.kind, found.name, len(found.pods)) == (kind, "run", 3)


def test_pods_of_a_jobset_are_one_holder_over_all_its_jobs() -> None:
    pods = [
        pod(
            f"run-{part}-0",
            metadata={
                **controlled("Job", f"run-{part}"),
                "labels": {"jobset.sigs.k8s.io/jobset-name": "run"},
            },
        )
        for part in ("lead", "work")
    ]
    (found,) = holders(pods, [])
    assert (found.kind, found.name, len(found.pods)) == ("JobSet", "run", 2)


def test_gpus_of_init_containers_count_as_kubernetes_counts_them() -> None:
    def container(gpus: int, **more: str) -> dict[str, Any]:
        return {"name": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}, **more}

    sidecar, first = container(4, restartPolicy="Always"), container(6)
    for inits, main, gpus in (
        ([sidecar], 0, 4), ([sidecar], 2, 6), ([first], 2, 6), ([first, sidecar], 1, 6),
        ([sidecar, first], 2, 10),
    ):  # fmt: skip
        body = bare(pod(spec={"initContainers": inits, "containers": [container(main)]}))
        (found,) = holders([body], [])
        assert found.pods[0].gpus == gpus


def test_a_pod_is_of_a_jobset_only_by_its_job() -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": "other", "jobset.sigs.k8s.io/jobset-uid": "uid-other"}
    for of in ({}, controlled("StatefulSet", "run")):
        (found,) = holders([pod(metadata={"labels": labels, **of})], [])
        assert found.kind != "JobSet"


@pytest.mark.parametrize(
    "idle",
    [
        pod(spec={"containers": [{"name": "main"}]}),
        pod(spec={"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}),
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        pod(metadata={"deletionTimestamp": NOW}),
    ],
)
def test_what_holds_no_gpus_is_no_holder(idle: dict[str, Any]) -> None:
    assert holders([idle], []) == []


def test_shares_and_partitions_are_gpus() -> None:
    limits = {"nvidia.com/mig-1g.5gb": "3", "nvidia.com/gpu.shared": "1"}
    (found,) = holders([pod(spec={"containers": [{"resources": {"limits": limits}}]})], [])
    assert found.pods[0].gpus == 4


def test_a_session_is_known_by_its_pool_or_its_label() -> None:
    by_pool = pod("a", spec={"nodeSelector": {"trainstack.dev/pool": "l4"}})
    by_label = pod("b", metadata={"labels": {"trainstack.dev/purpose": "interactive"}})
    found = {one.name: one.interactive for one in holders([by_pool, by_label, pod("c")], ["l4"])}
    assert found == {"a": True, "b": True, "c": False}


def test_a_pod_that_has_not_started_has_no_time() -> None:
    (found,) = holders([pod(phase="Pending")], [])
    assert found.pods[0].started is None


def test_annotations_are_read_and_what_cannot_be_read_is_nothing() -> None:
    def noted(**notes: str) -> Any:
        named = {f"trainstack.dev/{key.replace('_', '-')}": text for key, text in notes.items()}
        (found,) = holders([pod(metadata={"annotations": named})], [])
        return found.pods[0]

    assert noted(last_checkpoint=NOW).last_checkpoint == seconds(NOW)
    assert noted(last_checkpoint="yesterday").last_checkpoint is None
    assert noted(idle_stop_at="never").stop_at == float("inf")
    assert noted(idle_stop_at=NOW).stop_at == seconds(NOW)
    assert noted(idle_stop_at="soon").stop_at is None


def test_times_are_written_as_they_are_read() -> None:
    at = seconds(NOW)
    assert at is not None and stamp(at + 0.9) == NOW
