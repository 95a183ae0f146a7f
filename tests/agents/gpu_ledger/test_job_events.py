"""Events of jobs, by the program that keeps the books."""

from agents.queued_jobs.reports import REPEAT_S
from agents.shared.times import stamp
from tests.agents.gpu_ledger.cluster import Cluster
from tests.agents.gpu_ledger.workloads import MIDNIGHT


def test_an_event_of_a_job_without_a_workload_is_not_repeated_for_each_list_of_workloads() -> None:
    cluster = Cluster()
    head = {
        "name": "train",
        "namespace": "team-a",
        "uid": "uid-train",
        "creationTimestamp": stamp(MIDNIGHT - 600),
    }
    cluster.jobs = [{"metadata": head, "spec": {"suspend": True}}]
    made = cluster.collector()
    for _ in range(4):
        cluster.run(made, rounds=4)
        # Changes were missed: the book and all Workloads are read again.
        cluster.gone = True
    assert cluster.steady < REPEAT_S
    writes = [path for method, path in cluster.requests if method != "LIST" and "/events" in path]
    assert len(writes) == 1
