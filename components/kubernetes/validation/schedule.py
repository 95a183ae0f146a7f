"""The gate's validation on a schedule, on idle quota of the deployed stack."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Component, Options
from components.kubernetes.slots import filled
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.code import shipped
from components.kubernetes.validation.run import (
    CONFIG,
    code_and_plan,
    digest,
    plan_text,
    slot_values,
    smoke_run,
)
from components.ordering import after
from infra.launchers import kubernetes

# No deploy waits for these runs: an inconclusive or preempted one is not a failed Job.
ACCEPT = ("PASS", "INCONCLUSIVE", "SKIPPED")


class SmokeScheduleArgs(TypedDict):
    """Arguments of `SmokeSchedule`."""

    schedule: str
    """A cron expression of five fields, UTC."""
    run: SmokeTestArgs
    """The arguments of the gate, with the queue and the priority of scheduled runs."""
    plan: NotRequired[Mapping[str, pulumi.Input[Any]]]
    """Further fields of the plan, such as where a run reports a failure or a slower stack."""


class SmokeSchedule(Component):
    """A CronJob that repeats the gate's validation, with the same code and plan, below all other work.

    Kueue queues every run. It owns no quota: it borrows idle quota, and is suspended when an owner reclaims
    it, which the run records as SKIPPED. Its Job fails with exit code 1 when training does not work as it
    should, with 3 when that could not be determined, and completes otherwise; the figures of every run are in
    the tracking server. It uses the claim template of the pool's `SmokeTest`, so it must come after it.
    """

    cron_job: pulumi.Output[str]
    """Name of the CronJob."""

    def __init__(self, name: str, args: SmokeScheduleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        run, code = args["run"], shipped()
        own = f"smoke-schedule-{run['pool']}"
        plan = pulumi.Output.all(plan=run["plan"], image=run["image"], more=args.get("plan", {})).apply(
            lambda known: plan_text(run, code, {**known, "plan": _scheduled(known)})
        )
        config_name = plan.apply(lambda text: f"{own}-{digest(text)}")
        metadata = meta.v1.ObjectMetaArgs(name=config_name, namespace=run["namespace"])
        config = code_and_plan(f"{name}-code", metadata, code, plan, self.child())
        service, cron = (
            filled(body, {**slot_values(run, code), CONFIG: config_name})
            for body in kubernetes.cron_job(smoke_run(run, own), args["schedule"])
        )
        reached = core.v1.Service(
            f"{name}-service", metadata=service["metadata"], spec=service["spec"], opts=self.child()
        )
        made = batch.v1.CronJob(
            f"{name}-cron",
            metadata=cron["metadata"],
            spec=cron["spec"],
            opts=self.child(pulumi.ResourceOptions(depends_on=[config, reached])),
        )
        self.cron_job = after(pulumi.Output.from_input(own), [made])
        self.register_declared()


def _scheduled(known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **known["plan"],
        "task": "scheduled-validation",
        "accept": list(ACCEPT),
        "preemptible": True,
        **known["more"],
    }
