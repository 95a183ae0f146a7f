"""Validation of CreateTrainingJob beyond the shapes of its fields.

Source: botocore 1.44.5 sagemaker/2017-07-24 (CreateTrainingJobRequest, StoppingCondition, ResourceConfig,
AlgorithmSpecification); Kenza-AI/sagify issue 111 (MaxWaitTimeInSeconds without spot);
aws/amazon-sagemaker-examples pull request 3109 (ResourceInUse); aws/sagemaker-python-sdk issue 4939 (more
than the local storage is refused; the service sends no message).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import request_tags
from rehearsal.dataplane.aws.http import ServiceError
from rehearsal.dataplane.aws.iam_policies import role_record, trusts
from rehearsal.jobs.aws.sagemaker import plans
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord

_SUBNET, _GROUP = "aws:ec2/subnet:Subnet", "aws:ec2/securityGroup:SecurityGroup"
_LONGEST_S = 28 * 86_400  # "The maximum value is 28 days" (StoppingCondition$MaxRuntimeInSeconds)


def check(state: State, request: Mapping[str, Any], name_taken: TrainingJobRecord | None) -> None:
    """Raise ServiceError for the first violation."""
    arn = str(request["RoleArn"])
    role = role_record(state, arn)
    if role is None or not trusts(role, "sagemaker.amazonaws.com", frozenset({"sts:AssumeRole"})):
        raise ServiceError(
            "ValidationException",
            f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role.",
        )
    for message in (*_machines(request), *_times(request), *_algorithm(request), *_network(state, request)):
        raise ServiceError("ValidationException", message)
    plans.check(state, request)
    if name_taken is not None:
        raise ServiceError(
            "ResourceInUse",
            "Training job names must be unique within an AWS account and region, and a training job with "
            f"this name already exists ({name_taken.arn})",
        )


def _machines(request: Mapping[str, Any]) -> Iterator[str]:
    resources = request.get("ResourceConfig")
    if not resources:
        yield "ResourceConfig is required for a job that runs on instances."
        return
    if resources.get("InstanceGroups"):
        yield "A rehearsal runs jobs with one InstanceType, not with InstanceGroups."
    if not resources.get("InstanceType") or not resources.get("InstanceCount"):
        yield "ResourceConfig needs InstanceType and InstanceCount."
    if resources.get("VolumeKmsKeyId") and local_storage_gb(str(resources.get("InstanceType"))):
        kind = resources["InstanceType"]
        yield f"You can't request a VolumeKmsKeyId when using an instance type with local storage: {kind}"
    local = local_storage_gb(str(resources.get("InstanceType")))
    if 0 < local < int(resources.get("VolumeSizeInGB") or 0):
        yield f"You can't request a VolumeSizeInGB greater than the local instance storage: {local} GB"
    if resources.get("KeepAlivePeriodInSeconds") and request.get("EnableManagedSpotTraining"):
        yield "KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true"


def _times(request: Mapping[str, Any]) -> Iterator[str]:
    condition = request.get("StoppingCondition") or {}
    longest, patience = condition.get("MaxRuntimeInSeconds", 86_400), condition.get("MaxWaitTimeInSeconds")
    if longest > _LONGEST_S:
        yield f"Invalid MaxRuntimeInSeconds. It must be at most {_LONGEST_S}"
    if request.get("EnableManagedSpotTraining"):
        if patience is None:
            yield "Invalid MaxWaitTimeInSeconds. It is required when EnableManagedSpotTraining is set to true"
        elif patience < longest:
            yield (
                "Invalid MaxWaitTimeInSeconds. It must be equal to or greater than MaxRuntimeInSeconds "
                f"({patience} < {longest})"
            )
    elif patience is not None:
        when = "when EnableManagedSpotTraining is set to true"
        yield f"Invalid MaxWaitTimeInSeconds. It is only supported {when}"


def _algorithm(request: Mapping[str, Any]) -> Iterator[str]:
    algorithm = request.get("AlgorithmSpecification") or {}
    if bool(algorithm.get("TrainingImage")) == bool(algorithm.get("AlgorithmName")):
        yield "AlgorithmSpecification needs either TrainingImage or AlgorithmName."
    for word in (*(algorithm.get("ContainerEntrypoint") or ()), *(algorithm.get("ContainerArguments") or ())):
        if "\n" in word:  # their pattern, `.*`, ends at a line
            yield "ContainerEntrypoint and ContainerArguments hold no line breaks."
    names = [channel.get("ChannelName") for channel in request.get("InputDataConfig") or ()]
    if len(set(names)) < len(names):
        yield f"Channel names must be unique: {sorted(map(str, names))}"


def _network(state: State, request: Mapping[str, Any]) -> Iterator[str]:
    network = request.get("VpcConfig") or {}
    asked = (
        ("Subnets", "subnets", _SUBNET),
        ("SecurityGroupIds", "security groups", _GROUP),
    )
    for member, what, token in asked:
        missing = [
            one
            for one in network.get(member) or ()
            if not any(record.type == token for record in state.issued(one))
        ]
        if missing:
            yield f"The following {what} do not exist: {', '.join(missing)}"


def local_storage_gb(machine: str) -> int:
    """Local NVMe storage of a type such as `ml.g6.xlarge`, in GB; 0 when unknown."""
    types = facts.catalog().instance_types
    found = types.get(machine.removeprefix("ml.")) if isinstance(types, Mapping) else None
    return int(found.local_nvme_gb or 0) if found is not None else 0


def condition_keys(request: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str | tuple[str, ...]]:
    """Condition keys for policies: machines, network, tags.

    Source: Service Authorization Reference, Amazon SageMaker (CreateTrainingJob,
    CreateHyperParameterTuningJob).
    """
    resources, network = request.get("ResourceConfig") or {}, request.get("VpcConfig") or {}
    found: dict[str, str | tuple[str, ...] | None] = {
        "sagemaker:InstanceTypes": resources.get("InstanceType"),
        "sagemaker:VolumeKmsKey": resources.get("VolumeKmsKeyId"),
        "sagemaker:VpcSubnets": tuple(network.get("Subnets") or ()),
        "sagemaker:VpcSecurityGroupIds": tuple(network.get("SecurityGroupIds") or ()),
        **request_tags(tags),
    }
    return {key: value for key, value in found.items() if value}
