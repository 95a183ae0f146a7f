"""Limits of a team's objects: none of them lets Kueue admit a job that then gets no pods."""

from functools import partial

import pytest

from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.queueing.room import ROOM
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.tenancy.attempt import body, refuser
from tests.cluster.tenancy.scene import HUGE, job_set, job_spec, pod_spec
from tests.cluster.waiting import counted, eventually

A100 = flavor("a100", "p4d.24xlarge", 2, usd_per_hour=32.77)
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]


def test_finished_pods_take_no_room_of_jobs_that_are_admitted(api: KubernetesApi) -> None:
    """Without its pods an admitted job would hold GPUs until it is deactivated, hours later."""
    with machines(api, [A100], {"a100": "p4d.24xlarge"}), queues(api, [A100], TEAM) as lab:
        lab.submit("Research", "done", gpus=8, seconds=1)
        eventually(lambda: lab.job("done").get("status", {}).get("succeeded"), lambda: lab.job("done"))
        assert len(lab.pods("done")) == 1
        assert _most(lab, "pods", 1)
        lab.submit("Research", "next", gpus=8)
        lab.nodes("next")
        own = body("Pod", spec=pod_spec())
        own["metadata"]["namespace"] = lab.namespaces["Research"]
        with pytest.raises(ApiError, match="exceeded quota: objects"):
            api.create(own)


def test_a_job_set_needs_room_for_its_jobs(api: KubernetesApi) -> None:
    """Kueue admits it, and also a TrainJob, without the Jobs that the quota refuses."""
    with queues(api, [A100], TEAM) as lab:
        space = lab.namespaces["Research"]
        waits = _in(space, body("JobSet", name="waits", spec=job_set(job_spec(HUGE))))
        eventually(lambda: _accepted(api, _in(space, body("JobSet", spec=job_set(job_spec())))), "it holds")
        api.create(waits)
        own = "jobset.sigs.k8s.io/jobset-name=waits"
        (job,) = eventually(lambda: api.list("batch/v1", "Job", space, labels=own), "its Job is there")
        # It is counted before Kueue admits the JobSet.
        assert job["spec"]["suspend"]
        _most(lab, "jobs", 2)
        two = job_set(job_spec())
        two["replicatedJobs"][0]["replicas"] = 2
        assert eventually(partial(_refused, api, _in(space, body("JobSet", spec=two))), "no room") == ROOM
        _most(lab, "jobs", 1)
        spec = {"runtimeRef": {"name": "torch-distributed"}}
        for each in (body("JobSet", spec=job_set(job_spec())), body("TrainJob", spec=spec)):
            assert eventually(partial(_refused, api, _in(space, each)), "there is no room") == ROOM
        _most(lab, "jobs", 2)
        eventually(lambda: _accepted(api, _in(space, body("JobSet", spec=job_set(job_spec())))), "there is")


def test_a_job_set_has_a_job_that_is_counted(api: KubernetesApi) -> None:
    with queues(api, [A100], TEAM) as lab:
        space = lab.namespaces["Research"]
        empty = job_set(job_spec())
        empty["replicatedJobs"][0]["replicas"] = 0
        for spec in (empty, {}, {**job_set(job_spec()), "managedBy": "example.com/none"}):
            made = _in(space, body("JobSet", spec=spec))
            assert eventually(partial(_refused, api, made), "the policy holds") == ROOM


def _in(space: str, made: Object) -> Object:
    made["metadata"]["namespace"] = space
    return made


def _refused(api: KubernetesApi, made: Object) -> str:
    """The part of the API server that refuses an object; empty: none."""
    try:
        api.create(made, dry_run=True)
    except ApiError as error:
        return refuser(error)
    return ""


def _accepted(api: KubernetesApi, made: Object) -> bool:
    return _refused(api, made) == ""


def _most(lab: Lab, part: str, most: int) -> set[str]:
    """Lower a team's limits whose name has this part; returns their names."""
    at = ("v1", "ResourceQuota", "objects")
    space = lab.namespaces["Research"]
    hard = lab.api.get(*at, space)["spec"]["hard"]
    lowered = {key: str(most) for key in hard if part in key.split(".")[0]}
    quota = lab.api.patch(*at, {"spec": {"hard": lowered}}, space)
    eventually(lambda: counted(lab.api, quota), "the limits are counted")
    return set(lowered)
