"""Validation of a stack without a cluster on AWS: a SageMaker job with its own role."""

from typing import Any

import pulumi

from components.aws.jobs.person_rights import RUNS
from components.aws.jobs.schedule import AwsJobSchedule
from components.aws.jobs.validation_role import AwsValidationRole, AwsValidationRoleArgs
from components.aws.pools.offers import cpu_offer, link_rates, node_offer, peak_tflops
from components.aws.storage.tiers import AwsStorage
from infra.catalog.aws import facts
from infra.catalog.aws.jobs import jobs
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import JobMachineSpec
from stacks.parts import Alerts, JobPlace, JobValidation, MachinePool
from stacks.validation import RESULTS


def job_validation_on_aws(
    spec: StackSpec,
    on: AwsSpec,
    machine: JobMachineSpec,
    *,
    place: JobPlace,
    tiers: AwsStorage,
    tracking: pulumi.Output[str],
    topic: pulumi.Output[str] | None,
    usd_per_hour: float | None,
    opts: pulumi.ResourceOptions,
) -> JobValidation:
    """A job in the stack's network on machines of one type; `topic` is for a schedule."""
    args: AwsValidationRoleArgs = {
        "region": spec.region,
        "image": spec.smoke.image,
        "checkpoint_bucket_arn": tiers.checkpoint_bucket_arn,
        "artifact_bucket_arn": tiers.artifact_bucket_arn,
        "kms_key_arn": tiers.kms_key_arn,
        "mlflow_arn": tracking,
        "subnet_ids": pulumi.Output.all(*place.subnets),
        "security_group_ids": list(place.security_groups),
        "results": RESULTS,
    }
    if topic is not None:
        args["alert_topic_arn"] = topic
    role = AwsValidationRole(f"{spec.name}-smoke", args, opts)
    found = pulumi.Output.all(
        role_arn=role.role_arn,
        output_uri=pulumi.Output.concat("s3://", tiers.artifact_bucket, f"/{RUNS}"),
        kms_key=tiers.kms_key_arn,
        subnets=list(place.subnets),
        security_groups=list(place.security_groups),
        training_plan_arn=machine.reservation,
        **_disk(machine.machine, tiers.kms_key_arn),
    )

    def repeat(request: pulumi.Output[str], passed: pulumi.ResourceOptions) -> pulumi.Output[str]:
        assert spec.smoke.schedule is not None and topic is not None  # only called with a schedule
        return AwsJobSchedule(
            f"{spec.name}-smoke-repeated",
            {
                "region": spec.region,
                "schedule": spec.smoke.schedule,
                "request": request,
                "role_arn": role.role_arn,
                "topic_arn": topic,
            },
            pulumi.ResourceOptions.merge(opts, passed),
        ).name

    return JobValidation(
        account=on.account_id,
        machine=_as_pool(machine, usd_per_hour),
        place=found,
        environment={"AWS_REGION": spec.region},
        results=pulumi.Output.concat("s3://", tiers.checkpoint_bucket, RESULTS),
        alerts=None if topic is None else Alerts(topic=topic, plan={"alert_topic_arn": topic}),
        repeat=repeat,
    )


def _disk(machine: str, key: pulumi.Input[str]) -> dict[str, pulumi.Input[Any]]:
    """The disk of a job; the service refuses a key for local disks."""
    hardware = jobs.machines[machine]
    return {"volume_gib": hardware.disk_gb, **({} if hardware.has_nvme else {"volume_kms_key": key})}


def _as_pool(machine: JobMachineSpec, usd_per_hour: float | None) -> MachinePool:
    """The machine type, with the declared figures of its EC2 type."""
    name = jobs.machines[machine.machine].ec2
    processors, known = facts.cpu_type(name), dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(processors)
    else:
        hardware = facts.instance_type(name)
        offer = node_offer(hardware, None)
        known = {"peak_tflops": peak_tflops(hardware), **link_rates(hardware, efa=False)}
    return MachinePool(machine=name, offer=offer, usd_per_hour=usd_per_hour, facts=known)
