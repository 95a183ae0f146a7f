"""JobSet (jobset.x-k8s.io/v1alpha2, v0.12): the default vehicle of users' runs (pure).

It needs no operator besides JobSet's own, gives pods their names, restarts all of them together, and is
queued by Kueue as one.
"""

from smoke_training.launchers.kubernetes import indexed_job
from smoke_training.launchers.pods import (
    Body,
    body,
    indexed_environment,
)
from smoke_training.launchers.runplan import RunPlan

_JOBS = "node"


def jobset(plan: RunPlan) -> list[Body]:
    """One replicated Job, indexed: its pods are `NAME-node-0-INDEX`, found below the subdomain NAME."""
    env = indexed_environment(plan, f"{plan.name}-{_JOBS}-0-0.{plan.name}")
    job = indexed_job(plan, env, subdomain=None)  # the controller names the pods and sets it itself
    spec: Body = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "coordinator": {"replicatedJob": _JOBS, "jobIndex": 0, "podIndex": 0},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [_JOBS]},
        "failurePolicy": _failure_policy(plan),
        "replicatedJobs": [{"name": _JOBS, "replicas": 1, "template": {"spec": job}}],
    }
    return [body(plan, "jobset.x-k8s.io/v1alpha2", "JobSet", spec)]


def _failure_policy(plan: RunPlan) -> Body:
    """Begin again as often as the plan says; a run that took too long would only take as long again."""
    return {
        "maxRestarts": plan.max_restarts,
        "rules": [
            {"name": "overTime", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        ],
    }
