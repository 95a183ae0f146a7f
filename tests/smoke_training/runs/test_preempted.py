"""A scheduled run that makes way: whole jobs on loopback, stopped as a queue stops them."""

import signal
from pathlib import Path

import pytest

from tests.smoke_training.jobs import Job, bundle, check, until

SCHEDULED = {
    "preemptible": True,
    "accept": ["PASS", "INCONCLUSIVE", "SKIPPED"],
    "task": "scheduled-validation",
}


@pytest.mark.parametrize("first", [0, 1])
def test_a_run_that_makes_way_is_skipped_and_no_failed_job(
    tmp_path: Path, jobs: list[Job], first: int
) -> None:
    job = Job(bundle(tmp_path), tmp_path, plan=SCHEDULED)
    jobs.append(job)
    until(lambda: job.ranks(0) and job.ranks(1))
    # Pods of a suspended Job get their signals at different times: the other node is informed by this one.
    job.nodes[first].process.send_signal(signal.SIGTERM)
    codes = {index: node.finish(30)[0] for index, node in sorted(job.nodes.items())}
    assert codes == {0: 0, 1: 0}
    result = job.result()
    assert result["verdict"] == "SKIPPED" and result["exit_code"] == 4
    assert "preempted" in result["headline"]
    assert check(result, "run.completed")["status"] == "SKIPPED"
    assert not [item for item in result["checks"] if item["status"] in ("FAIL", "ERROR")]
    assert job.nodes[0].message().startswith("SKIPPED")
    assert job.processes() == []
