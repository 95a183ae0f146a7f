"""Converts the description of a training job of SageMaker to the record of every service (pure).

States are those of DescribeTrainingJob in the service's API (SecondaryStatus, TrainingJobStatus).
"""

from collections.abc import Mapping
from typing import Any

from infra.jobs.service import JobPhase, JobState, PhaseChange, ServiceJob
from infra.naming import TAG_PREFIX
from smoke_training.verdict_record import readable

STACK_VARIABLE = "TRAINSTACK_STACK"
_STATES = {
    "InProgress": JobState.RUNNING,
    "Stopping": JobState.STOPPING,
    "Completed": JobState.COMPLETED,
    "Failed": JobState.FAILED,
    "Stopped": JobState.STOPPED,
    "Deleting": JobState.STOPPED,
}
_PHASES = {
    "Starting": JobPhase.WAITING,
    "LaunchingMLInstances": JobPhase.WAITING,
    "Pending": JobPhase.WAITING,
    "Restarting": JobPhase.WAITING,
    "PreparingTrainingStack": JobPhase.LOADING,
    "Downloading": JobPhase.LOADING,
    "DownloadingTrainingImage": JobPhase.LOADING,
    "Training": JobPhase.TRAINING,
    "Updating": JobPhase.TRAINING,
    "Interrupted": JobPhase.INTERRUPTED,
    "Uploading": JobPhase.SAVING,
    "Stopping": JobPhase.ENDING,
    "MaxRuntimeExceeded": JobPhase.OUT_OF_TIME,
    "MaxWaitTimeExceeded": JobPhase.WAITED_TOO_LONG,
}


def described(found: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> ServiceJob:
    """The job of a DescribeTrainingJob; `tags` name its owner where its environment does not."""
    environment, machines = found.get("Environment", {}), found["ResourceConfig"]
    tags = tags or {}

    def whose(key: str) -> str:
        return str(environment.get(f"TRAINSTACK_{key.upper()}") or tags.get(f"{TAG_PREFIX}:{key}", ""))

    changes = tuple(
        PhaseChange(one["StartTime"], phase(one["Status"]), one.get("StatusMessage", ""))
        for one in found.get("SecondaryStatusTransitions", ())
    )
    return ServiceJob(
        name=found["TrainingJobName"],
        stack=whose("stack"),
        person=whose("person"),
        team=whose("team"),
        machine=machines.get("InstanceType", ""),
        nodes=machines.get("InstanceCount", 1),
        spot=found.get("EnableManagedSpotTraining", False),
        reserved="TrainingPlanArn" in machines,
        state=_STATES.get(found["TrainingJobStatus"], JobState.RUNNING),
        phase=phase(found["SecondaryStatus"]),
        reason=readable(found.get("FailureReason", "")),
        created=found["CreationTime"],
        ended=found.get("TrainingEndTime"),
        max_run_s=found["StoppingCondition"].get("MaxRuntimeInSeconds", 86400),
        trained_s=found.get("TrainingTimeInSeconds"),
        billed_s=found.get("BillableTimeInSeconds"),
        warm_s=found.get("WarmPoolStatus", {}).get("ResourceRetainedBillableTimeInSeconds", 0),
        changes=changes,
        model_uri=found.get("ModelArtifacts", {}).get("S3ModelArtifacts", ""),
        checkpoint_uri=found.get("CheckpointConfig", {}).get("S3Uri", ""),
        experiment=environment.get("MLFLOW_EXPERIMENT_NAME", ""),
    )


def phase(status: str) -> JobPhase:
    """The phase of a secondary status; unknown ones count as training."""
    if status in ("Completed", "Failed", "Stopped"):
        return JobPhase.OVER
    return _PHASES.get(status, JobPhase.TRAINING)
