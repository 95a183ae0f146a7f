"""Kubernetes' own objects: an indexed Job with its Service, and a CronJob around it (batch/v1, pure)."""

from smoke_training.launchers.pods import (
    CONTAINER,
    Body,
    body,
    indexed_environment,
    indexed_words,
    metadata,
    pod_labels,
    template,
)
from smoke_training.launchers.runplan import RunPlan

_HISTORY = 3  # Jobs of a CronJob that `kubectl` still shows
# A Job of a CronJob gets its name when it is made: its pods read it from a label that all pods of a Job have.
_OWN_JOB: Body = {
    "name": "JOB_NAME",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}},
}


def service(plan: RunPlan) -> Body:
    """The headless Service by which the pods find each other, before they are ready."""
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
    """An indexed Job, one pod a node, and the Service its pods need."""
    return [service(plan), body(plan, "batch/v1", "Job", _job_spec(plan))]


def cron_job(plan: RunPlan, schedule: str, deadline_s: int = 3600) -> list[Body]:
    """The same run at the times of a cron expression (UTC), never two at once.

    The queue sees every single Job and nothing of the CronJob, so the labels sit on the job template. A run
    that could not begin within `deadline_s` of its time is left out.
    """
    head = metadata(plan)
    labels = head.pop("labels")
    if plan.labels:
        head["labels"] = dict(plan.labels)
    spec: Body = {
        "schedule": schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": deadline_s,
        "successfulJobsHistoryLimit": _HISTORY,
        "failedJobsHistoryLimit": _HISTORY,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": _job_spec(plan, _OWN_JOB)},
    }
    return [service(plan), {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": head, "spec": spec}]


def _job_spec(plan: RunPlan, own: Body | None = None) -> Body:
    """The spec of a Job of the plan's name, or of one that reads its name from the variable `own`."""
    subdomain = plan.service or plan.name
    run = f"$({own['name']})" if own else plan.name
    master = f"{run}-0.{subdomain}" + (f".{plan.namespace}.svc" if plan.namespace else "")
    env = indexed_environment(plan, master, run)
    # A reference to a variable works only after that variable.
    return indexed_job(plan, [own, *env] if own else env, subdomain)


def indexed_job(plan: RunPlan, env: list[Body], subdomain: str | None) -> Body:
    """The spec of a Job with one pod per node, of which each finds its number and the first one in `env`."""
    return {
        "completionMode": "Indexed",
        "completions": plan.nodes,
        "parallelism": plan.nodes,
        # A pod replaced alone could not rejoin the others: ranks restart inside it, a lost node ends the run.
        "backoffLimit": 0,
        "activeDeadlineSeconds": plan.deadline_s,
        "podFailurePolicy": {"rules": failure_rules(CONTAINER)},
        "template": template(plan, indexed_words(plan), env, subdomain=subdomain),
    }


def failure_rules(container: str) -> list[Body]:
    """End the Job at the first pod that fails, and say in its message whether the cloud took the pod."""
    return [
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": container, "operator": "NotIn", "values": [0]},
        },
    ]
