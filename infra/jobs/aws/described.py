"""What SageMaker says of a training job, as a record that is the same for every service (pure).

States are those of DescribeTrainingJob in the service's API (SecondaryStatus, TrainingJobStatus).
"""

from collections.abc import Mapping
from typing import Any

from infra.jobs.service import Change, Job, Phase, State
from infra.naming import TAG_PREFIX
from smoke_training.launchers.verdict_record import readable

STACK_VARIABLE = "TRAINSTACK_STACK"
_STATES = {
    "InProgress": State.RUNNING,
    "Stopping": State.STOPPING,
    "Completed": State.COMPLETED,
    "Failed": State.FAILED,
    "Stopped": State.STOPPED,
    "Deleting": State.STOPPED,
}
_PHASES = {
    "Starting": Phase.WAITING,
    "LaunchingMLInstances": Phase.WAITING,
    "Pending": Phase.WAITING,
    "Restarting": Phase.WAITING,
    "PreparingTrainingStack": Phase.LOADING,
    "Downloading": Phase.LOADING,
    "DownloadingTrainingImage": Phase.LOADING,
    "Training": Phase.TRAINING,
    "Updating": Phase.TRAINING,
    "Interrupted": Phase.INTERRUPTED,
    "Uploading": Phase.SAVING,
    "Stopping": Phase.ENDING,
    "MaxRuntimeExceeded": Phase.OUT_OF_TIME,
    "MaxWaitTimeExceeded": Phase.WAITED_TOO_LONG,
}


def described(found: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> Job:
    """The job of a DescribeTrainingJob; `tags` say whose it is where its environment does not."""
    environment, machines = found.get("Environment", {}), found["ResourceConfig"]
    tags = tags or {}

    def whose(key: str) -> str:
        return str(environment.get(f"TRAINSTACK_{key.upper()}") or tags.get(f"{TAG_PREFIX}:{key}", ""))

    changes = tuple(
        Change(one["StartTime"], phase(one["Status"]), one.get("StatusMessage", ""))
        for one in found.get("SecondaryStatusTransitions", ())
    )
    return Job(
        name=found["TrainingJobName"],
        stack=whose("stack"),
        person=whose("person"),
        team=whose("team"),
        machine=machines.get("InstanceType", ""),
        nodes=machines.get("InstanceCount", 1),
        spot=found.get("EnableManagedSpotTraining", False),
        reserved="TrainingPlanArn" in machines,
        state=_STATES.get(found["TrainingJobStatus"], State.RUNNING),
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


def phase(word: str) -> Phase:
    """The phase of a secondary status; of one that is new, that it goes on."""
    if word in ("Completed", "Failed", "Stopped"):
        return Phase.OVER
    return _PHASES.get(word, Phase.TRAINING)
