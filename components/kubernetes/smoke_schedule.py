"""The gate's validation again and again on the live stack, on quota that nobody uses at the time."""

import hashlib
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Component
from components.kubernetes import smoke_job
from components.kubernetes.queueing.kueue import PRIORITY_LABEL, QUEUE_NAME_LABEL
from components.kubernetes.smoke_bundle import bundle
from components.kubernetes.smoke_test import (
    CLAIM_TEMPLATE,
    DIGEST_LENGTH,
    SmokeTestArgs,
    environment,
    job_spec,
    plan_text,
    shape_of,
)
from components.ordering import after

NAME = "smoke-schedule"
# The tracking server keeps the history; these are the Jobs that `kubectl` still shows.
HISTORY = 3
# A run that could not be made within this time of its turn (the control plane was away) is left out.
LATE_S = 3600
# Nothing is awaited here: a run that found nothing certain, or made way, is no failed Job.
ACCEPT = ("PASS", "INCONCLUSIVE", "SKIPPED")


class SmokeScheduleArgs(TypedDict):
    """Arguments of `SmokeSchedule`."""

    schedule: str
    """When: a cron expression of five fields, UTC."""
    run: SmokeTestArgs
    """What: the arguments of the gate, with the queue and the priority of scheduled runs."""
    alert_topic_arn: NotRequired[pulumi.Input[str]]
    """SNS topic that is told when a run fails or the stack got slower; the pods' role may publish there."""


class SmokeSchedule(Component):
    """A CronJob that repeats the gate's validation, with the same code and plan, below all other work.

    Kueue queues every single run. It owns no quota: it borrows what lies idle, and is suspended when an owner
    asks for it, which the run records as SKIPPED. Its Job fails with exit code 1 when training does not work
    as it should, with 3 when that could not be found out, and completes otherwise; the figures of every run
    are in the tracking server. It uses the Service, the service account and the claim template of a
    `SmokeTest` in the same namespace, so it has to come after one.
    """

    cron_job: pulumi.Output[str]
    """Name of the CronJob."""

    def __init__(
        self, name: str, args: SmokeScheduleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        run, code = args["run"], bundle()
        shape = shape_of(run)
        plan = pulumi.Output.all(
            plan=run["plan"], image=run["image"], alert_topic_arn=args.get("alert_topic_arn")
        ).apply(lambda known: plan_text(run, code, {**known, "plan": _scheduled(known)}))
        config_name = plan.apply(lambda text: f"{NAME}-{_digest(text)}")
        config = core.v1.ConfigMap(
            f"{name}-code",
            metadata=meta.v1.ObjectMetaArgs(name=config_name, namespace=run["namespace"]),
            binary_data={smoke_job.CODE_FILE: code.base64},
            data={smoke_job.PLAN_FILE: plan},
            immutable=True,
            opts=self.child(),
        )
        inputs = smoke_job.PodInputs(
            job=None,
            config=config_name,
            namespace=run["namespace"],
            image=run["image"],
            claim_template=CLAIM_TEMPLATE if shape.efa and shape.efa_claims else None,
            pool_labels=run["pool_labels"],
            pvc=run.get("pvc_name"),
            pvc_folder=run.get("pvc_folder"),
            environment=environment(run),
        )
        cron = self._cron_job(name, args, smoke_job.pod_template(inputs, shape), config)
        self.cron_job = after(pulumi.Output.from_input(NAME), [cron])
        self.register_outputs({"cron_job": self.cron_job})

    def _cron_job(
        self,
        name: str,
        args: SmokeScheduleArgs,
        template: core.v1.PodTemplateSpecArgs,
        config: pulumi.Resource,
    ) -> batch.v1.CronJob:
        run = args["run"]
        return batch.v1.CronJob(
            f"{name}-cron",
            metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=run["namespace"]),
            spec=batch.v1.CronJobSpecArgs(
                schedule=args["schedule"],
                time_zone="Etc/UTC",
                # A run may wait long for idle nodes; the next one then is not made.
                concurrency_policy="Forbid",
                starting_deadline_seconds=LATE_S,
                successful_jobs_history_limit=HISTORY,
                failed_jobs_history_limit=HISTORY,
                job_template=batch.v1.JobTemplateSpecArgs(
                    # Kueue looks at the Jobs that are made, and at nothing of the CronJob.
                    metadata=meta.v1.ObjectMetaArgs(
                        labels={QUEUE_NAME_LABEL: run["queue"], PRIORITY_LABEL: run["priority"]}
                    ),
                    spec=job_spec(run, template),
                ),
            ),
            opts=self.child(pulumi.ResourceOptions(depends_on=[config])),
        )


def _scheduled(known: Mapping[str, Any]) -> dict[str, Any]:
    """The gate's plan for runs that nobody waits for."""
    return {
        **known["plan"],
        "task": "scheduled-validation",
        "accept": list(ACCEPT),
        "preemptible": True,
        "alert_topic_arn": known["alert_topic_arn"],
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
