"""State of a pod before its thread has started."""

import threading
from pathlib import Path

import pytest

from rehearsal.workloads.images import pullable
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.pod_status import pod_status
from rehearsal.workloads.translate import Object, Pod, Surroundings


class NoNode:
    """A node on which nothing is started."""

    def prepare(self, pod: Pod, container: Object) -> Surroundings:
        raise AssertionError("nothing is to be started")


def test_a_note_may_be_written_before_the_pod_has_begun(tmp_path: Path) -> None:
    pod = Pod(namespace="lab", name="gate-0", uid="1", ip="127.64.0.5", spec={})
    runner = PodRunner(pod, NoNode(), tmp_path / "logs" / "lab" / "gate-0.log", restart="Never")
    runner.note("fault: rank 1 may run 30% of the time")
    assert runner.state.notes == ("fault: rank 1 may run 30% of the time",)
    assert runner.log_tail() == ["[rehearsal] fault: rank 1 may run 30% of the time"]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("registry.invalid/team/train:1", "ImagePullBackOff"),
        ("registry.invalid:5000/train", "ImagePullBackOff"),
        ("Team/Train:1", "InvalidImageName"),
        ("python:3.13:1", "InvalidImageName"),
        ("python@sha256:12", "InvalidImageName"),
    ],
)
def test_a_pod_whose_image_cannot_be_pulled_waits_as_a_kubelet_reports_it(
    image: str, reason: str, tmp_path: Path
) -> None:
    container = {"name": "main", "image": image}
    pod = Pod(namespace="lab", name="typo", uid="1", ip="127.64.0.5", spec={"containers": [container]})
    changed = threading.Event()
    runner = PodRunner(pod, NoNode(), tmp_path / "typo.log", restart="Never", on_change=changed.set)
    runner.start()
    try:
        assert changed.wait(30)
        found = pod_status([container], runner.state)
    finally:
        runner.stop()
        assert runner.join(30)
    assert found["phase"] == "Pending"
    (row,) = found["containerStatuses"]
    assert row["state"]["waiting"]["reason"] == reason and image in row["state"]["waiting"]["message"]


@pytest.mark.parametrize(
    "image",
    ["python", "python:3.13-slim", "localhost/a", "localhost:5000/a/b:1", "ghcr.io/o/r-x__y.z:1.0_2",
     f"123456789012.dkr.ecr.eu-central-1.amazonaws.com/a@sha256:{'0' * 64}", f"e.com/a:1@sha256:{'f' * 64}"],
)  # fmt: skip
def test_images_with_other_names_are_taken_as_present(image: str) -> None:
    pullable(image)
