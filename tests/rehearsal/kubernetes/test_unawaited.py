"""Objects that are not awaited: the API server accepts them and refuses only their pods."""

import pytest

from rehearsal.core.model import Properties, RefusalError
from tests.rehearsal.kubernetes.harness import DEPLOYMENT, JOB, NAMESPACE, Rehearsed, job, script_pod, web
from tests.rehearsal.kubernetes.rules.building import cron_job

CRON_JOB, REPLICA_SET = "kubernetes:batch/v1:CronJob", "kubernetes:apps/v1:ReplicaSet"
REFUSED = 'is forbidden: violates PodSecurity "baseline:latest"'


@pytest.fixture(autouse=True)
def _guarded(rehearsed: Rehearsed) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    rehearsed.create(NAMESPACE, {"metadata": {"name": "lab", "labels": labels}}, "lab")


def warned(rehearsed: Rehearsed) -> list[str]:
    return [text for severity, text in rehearsed.log if severity == "warning" and REFUSED in text]


def test_kinds_that_the_provider_does_not_await_are_accepted_with_a_warning(rehearsed: Rehearsed) -> None:
    nightly = cron_job()
    nightly["spec"]["jobTemplate"]["spec"]["template"]["spec"]["hostNetwork"] = True
    assert rehearsed.create(CRON_JOB, nightly, "nightly")[0] == "lab/nightly"
    assert len(warned(rehearsed)) == 1
    assert "accepts the CronJob" in warned(rehearsed)[0]
    assert rehearsed.create(REPLICA_SET, web(), "web")[0] == "lab/web"
    assert len(warned(rehearsed)) == 1
    shared = web("shared")
    shared["spec"]["template"]["spec"]["hostNetwork"] = True
    assert rehearsed.create(REPLICA_SET, shared, "shared")[0] == "lab/shared"
    assert len(warned(rehearsed)) == 2


@pytest.mark.parametrize(
    "annotations", [{"pulumi.com/skipAwait": "true"}, {"pulumi.com/waitFor": "jsonpath={.metadata.uid}"}]
)
def test_a_job_that_is_not_awaited_is_accepted_and_gets_no_pods(
    rehearsed: Rehearsed, annotations: Properties
) -> None:
    rehearsed.config_map("job", {"main.py": "raise SystemExit(0)"})
    inputs = job("job", script_pod("job", hostNetwork=True), annotations=annotations)
    assert rehearsed.create(JOB, inputs, "job")[0] == "lab/job"
    assert len(warned(rehearsed)) == 1
    assert not any(row["pids"] for row in rehearsed.cloud.workloads())


def test_what_is_awaited_is_refused(rehearsed: Rehearsed) -> None:
    inputs = web()
    inputs["spec"]["template"]["spec"]["hostNetwork"] = True
    with pytest.raises(RefusalError, match="in vain"):
        rehearsed.create(DEPLOYMENT, inputs, "web")
