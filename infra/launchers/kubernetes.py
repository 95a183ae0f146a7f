"""An indexed Job with its Service, a CronJob around it (batch/v1), and a JobSet of one (pure)."""

from infra.launchers.pods import (
    Body,
    body,
    given,
    indexed_environment,
    indexed_words,
    metadata,
    pod_labels,
    template,
)
from infra.launchers.runplan import RunPlan

_NODES = "node"  # name of the Job in a JobSet
_HISTORY = 3  # Jobs of a CronJob that `kubectl` still shows
# A Job of a CronJob gets its name at creation; its pods read it from a label of all pods of a Job.
_OWN_JOB: Body = {
    "name": "JOB_NAME",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}},
}


def service(plan: RunPlan) -> Body:
    """Render the headless Service that resolves the pods' names, before they are ready."""
    head = metadata(plan, plan.service)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**head, "labels": pod_labels(plan)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": pod_labels(plan),
            "ports": [
                {"name": name, "port": port}
                for name, port in {"rendezvous": plan.master_port, **plan.ports}.items()
            ],
        },
    }


def job(plan: RunPlan) -> list[Body]:
    """Render an indexed Job, one pod per node, and the Service of its pods."""
    return [service(plan), body(plan, "batch/v1", "Job", {**_job_spec(plan), **_kept(plan)})]


def cron_job(plan: RunPlan, schedule: str) -> list[Body]:
    """Render the same run at the times of a cron expression (UTC), never two at once.

    The queue handles single Jobs and not the CronJob, so the labels are on the job template. A run that could
    not start within an hour of its time is skipped.
    """
    whole = metadata(plan)
    head = given({**whole, "labels": dict(plan.labels) or None})
    spec: Body = {
        "schedule": schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": _HISTORY,
        "failedJobsHistoryLimit": _HISTORY,
        "jobTemplate": {"metadata": {"labels": whole["labels"]}, "spec": _job_spec(plan, _OWN_JOB)},
    }
    return [service(plan), {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": head, "spec": spec}]


def jobset(plan: RunPlan) -> list[Body]:
    """Render one replicated, indexed Job: its pods are `NAME-node-0-INDEX`, found below the subdomain NAME.

    The default for users' runs: it needs no operator besides JobSet's own, gives pods their names, restarts
    all of them together, and is queued by Kueue as one (jobset.x-k8s.io/v1alpha2, v0.12).
    """
    env = indexed_environment(plan, f"{plan.name}-{_NODES}-0-0.{plan.name}")
    node = _indexed_job(plan, env, subdomain=None)  # the controller names the pods and sets the subdomain
    over_time = {"name": "overTime", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}
    spec: Body = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "coordinator": {"replicatedJob": _NODES, "jobIndex": 0, "podIndex": 0},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [_NODES]},
        # Restart as often as the plan allows; a run past its deadline is not restarted.
        "failurePolicy": {"maxRestarts": plan.max_restarts, "rules": [over_time]},
        "replicatedJobs": [{"name": _NODES, "replicas": 1, "template": {"spec": node}}],
        **_kept(plan),
    }
    return [body(plan, "jobset.x-k8s.io/v1alpha2", "JobSet", spec)]


def _kept(plan: RunPlan) -> Body:
    return {} if plan.kept_s is None else {"ttlSecondsAfterFinished": plan.kept_s}


def _job_spec(plan: RunPlan, own: Body | None = None) -> Body:
    """Return the spec of a Job of the plan's name, or of one that reads its name from the variable `own`."""
    subdomain = plan.service or plan.name
    run = f"$({own['name']})" if own else plan.name
    master = f"{run}-0.{subdomain}" + (f".{plan.namespace}.svc" if plan.namespace else "")
    env = indexed_environment(plan, master, run)
    # A reference to a variable works only after that variable.
    return _indexed_job(plan, [own, *env] if own else env, subdomain)


def _indexed_job(plan: RunPlan, env: list[Body], subdomain: str | None) -> Body:
    """Return the spec of a Job with one pod per node, which reads its index and node 0 from `env`."""
    return {
        "completionMode": "Indexed",
        "completions": plan.nodes,
        "parallelism": plan.nodes,
        # A pod replaced alone could not rejoin the others: ranks restart inside it, and the first pod that
        # fails ends the Job. No podFailurePolicy: the Job controller applies it also to pods that
        # it stopped when the queue suspended the Job (pkg/controller/job/job_controller.go,
        # `getFailJobMessage`, v1.36.2), and with one it replaces no pod of a lost node (`manageJob`).
        "backoffLimit": 0,
        "activeDeadlineSeconds": plan.deadline_s,
        "template": template(plan, indexed_words(plan), env, subdomain=subdomain),
    }
