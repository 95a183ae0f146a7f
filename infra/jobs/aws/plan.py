"""The part of a run's plan that is SageMaker's (pure)."""

from infra.catalog.aws import facts
from infra.catalog.aws.jobs import JobMachineType as Hardware
from infra.catalog.aws.jobs import jobs
from infra.jobs.options import RunOrder
from infra.jobs.service_part import ServicePart
from infra.launchers.bundle import NAME as WRAPPER
from infra.launchers.runplan import SageMakerOptions
from infra.naming import sanitize

CODE, DATA = "code", "data"
COMMAND = ("python3", f"/opt/ml/input/data/{CODE}/{WRAPPER}", "job")
# TrainingEnvironmentValue of SageMaker's API.
_VALUE_LENGTH = 512


def part(order: RunOrder, name: str, code_uri: str, checkpoint_uri: str | None) -> ServicePart:
    """A run as one training job, or as the trials of a search."""
    hardware = _hardware(order)
    known = facts.instance_types.get(hardware.ec2)
    return ServicePart(
        command=COMMAND,
        machine=hardware.ec2,
        gpus=hardware.gpus,
        cpu=facts.vcpus(hardware.ec2) or 1,
        memory_gib=known.memory_mib // 1024 if known else 1,
        value_length=_VALUE_LENGTH,
        sagemaker=_sagemaker(order, name, code_uri, checkpoint_uri),
    )


def _sagemaker(order: RunOrder, name: str, code_uri: str, checkpoint_uri: str | None) -> SageMakerOptions:
    outputs, options = order.outputs, order.options
    hardware = _hardware(order)
    data = {DATA: options.data} if options.data else {}
    wait_s = round((order.max_hours + options.max_wait_hours) * 3600)
    own = f"{outputs.checkpoint_uri.rstrip('/')}/teams/{order.person.folder}/{name}"
    # Names of trials begin with the short name of the search, which roles cannot match.
    kept = f"/{sanitize(f'{outputs.stack}-{order.person.name}-tuning')}" if options.tune else ""
    return SageMakerOptions(
        role_arn=order.role,
        output_uri=f"{outputs.artifact_uri.rstrip('/')}/runs{kept}",
        job_name=name,
        checkpoint_uri=None if order.reads_only else checkpoint_uri or own,
        channels={CODE: code_uri, **data},
        code_channel=CODE,
        kms_key=outputs.kms_key,
        spot=order.spot,
        max_wait_s=wait_s if order.spot else None,
        keep_alive_s=options.keep_warm_minutes * 60 or None,
        training_plan_arn=order.machine.reservation,
        subnets=outputs.subnets,
        security_groups=outputs.security_groups,
        volume_gib=hardware.disk_gb,
        # The service refuses a key for local disks.
        volume_kms_key=None if hardware.has_nvme else outputs.kms_key,
    )


def _hardware(order: RunOrder) -> Hardware:
    """Hardware of the machine; unknown types count as without GPUs."""
    machine = order.machine.machine
    return jobs.machines.get(machine) or Hardware(machine, notebook=False)
