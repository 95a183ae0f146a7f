"""State of a pod before its thread has started."""

from pathlib import Path

from rehearsal.workloads.pod import PodRunner
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
