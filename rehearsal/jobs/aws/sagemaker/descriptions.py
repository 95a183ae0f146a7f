"""Responses about training jobs, in the shapes of the service's model."""

from collections.abc import Mapping
from typing import Any

from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord

# Fields of the request that DescribeTrainingJob returns unchanged; source: botocore 1.44.5,
# CreateTrainingJobRequest and DescribeTrainingJobResponse.
_ECHOED = (
    "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig", "OutputDataConfig",
    "ResourceConfig", "VpcConfig", "StoppingCondition", "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining", "CheckpointConfig",
    "DebugHookConfig", "ExperimentConfig", "DebugRuleConfigurations", "TensorBoardOutputConfig",
    "ProfilerConfig", "ProfilerRuleConfigurations", "Environment", "RetryStrategy", "RemoteDebugConfig",
    "InfraCheckConfig", "ServerlessJobConfig", "MlflowConfig", "ModelPackageConfig",
)  # fmt: skip
_DEFAULTS: Mapping[str, Any] = {
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
    # "the default value is 1 day" (botocore 1.44.5, StoppingCondition$MaxRuntimeInSeconds)
    "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
}


def described(job: TrainingJobRecord) -> dict[str, Any]:
    """Response of DescribeTrainingJob."""
    request = job.request
    echoed = {name: request.get(name, _DEFAULTS.get(name)) for name in _ECHOED}
    outputs = str((request.get("OutputDataConfig") or {}).get("S3OutputPath") or "").rstrip("/")
    found: dict[str, Any] = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "TuningJobArn": job.tuning or None,
        "ModelArtifacts": {"S3ModelArtifacts": job.artifact or f"{outputs}/{job.name}/output/model.tar.gz"},
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary,
        "FailureReason": job.failure or None,
        "CreationTime": job.created,
        "LastModifiedTime": job.modified,
        "TrainingStartTime": job.started,
        "TrainingEndTime": job.ended,
        "SecondaryStatusTransitions": [dict(one) for one in job.transitions],
        **echoed,
        **times(job),
    }
    return {name: value for name, value in found.items() if value is not None}


def times(job: TrainingJobRecord) -> dict[str, Any]:
    """Billed time: from start to end on the machines, in whole seconds.

    "You are billed for the time interval between" TrainingStartTime and TrainingEndTime (botocore 1.44.5,
    DescribeTrainingJobResponse). The saving of managed spot training depends on a price that is not known
    beforehand, so both numbers are equal.
    """
    if job.started is None or job.ended is None:
        return {}
    seconds = max(1, round(job.ended - job.started))
    return {"TrainingTimeInSeconds": seconds, "BillableTimeInSeconds": seconds}


def summary(job: TrainingJobRecord) -> dict[str, Any]:
    """One entry of ListTrainingJobs."""
    found = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": job.created,
        "TrainingEndTime": job.ended,
        "LastModifiedTime": job.modified,
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary,
    }
    return {name: value for name, value in found.items() if value is not None}
