"""The validation of a stack without a cluster: a training job that gates the deploy."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi

from components.jobs.gate import JobGate
from infra.launchers.runplan import RunPlan
from infra.stackspec import StackSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import JOB_STARTUP_S
from stacks.parts import JobPlace, JobValidation
from stacks.validation import smoke_plan


def validated_machine(spec: StackSpec, layout: SmallLayout) -> JobMachineSpec | None:
    """The machine type that the gate trains on; None without a gate."""
    return next((one for one in layout.machines if one.name in spec.validated), None)


def job_validation(
    spec: StackSpec,
    *,
    service: Literal["sagemaker", "vertex"],
    place: JobPlace,
    tracking: pulumi.Output[str],
    access: JobValidation,
    after: Sequence[pulumi.Resource],
) -> Mapping[str, Any]:
    """Declare the job that gates the deploy; returns the fields of `infra.outputs.jobs.ValidationJob`.

    It runs on demand instead of spot, as an interrupted job is no validation; training plans are used as by
    people. `after` are the parts that must be ready first.
    """
    offer, nodes = access.machine.offer, spec.smoke.nodes
    run = RunPlan(
        name="smoke",  # each attempt has its own
        image=spec.smoke.image,
        command=(),  # filled in by `validation`
        nodes=nodes,
        gpus_per_node=offer["gpus"],
        cpu=offer["cpu"],
        memory_gib=offer["memory_gib"],
        labels={"trainstack:stack": spec.name, "trainstack:task": "deploy-validation"},
        timeout_s=spec.smoke.timeout_s,
        startup_timeout_s=JOB_STARTUP_S,
        instance_type=access.machine.machine,
    )
    gate = JobGate(
        f"{spec.name}-smoke",
        {
            "service": service,
            "stack": spec.name,
            "account": access.account,
            "region": spec.region,
            "run": run,
            "environment": {**access.environment, "MLFLOW_TRACKING_URI": tracking},
            "place": access.place,
            "plan": smoke_plan(spec, access.machine, nodes, shared=False),
            "code_uri": place.code_uri,
            "results_uri": access.results,
            "accept": spec.smoke.accept,
            "start_within_s": spec.smoke.queue_timeout_s,
            "alerts": access.alerts.plan if access.alerts else None,
        },
        pulumi.ResourceOptions(depends_on=[*after]),
    )
    # Only a validation that passed is repeated.
    passed = pulumi.ResourceOptions(depends_on=[gate])
    schedule = access.repeat(gate.scheduled, passed) if access.alerts else None
    return {
        "job": gate.job_name,
        "result_uri": gate.result_uri,
        "schedule": schedule,
        "alert_topic": access.alerts and access.alerts.topic,
    }
