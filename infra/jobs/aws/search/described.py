"""Searches of SageMaker (hyperparameter tuning jobs) as runs of a stack (pure)."""

from collections.abc import Iterable, Mapping
from typing import Any

from infra.jobs.aws.described import STACK_VARIABLE
from infra.jobs.service import JobPhase, JobState, PhaseChange, ServiceJob

_STATES = {
    "Completed": JobState.COMPLETED,
    "Failed": JobState.FAILED,
    "Stopped": JobState.STOPPED,
    "Stopping": JobState.STOPPING,
}


def described_search(found: Mapping[str, Any], trials: Iterable[ServiceJob] = ()) -> ServiceJob:
    """The run of a DescribeHyperParameterTuningJob.

    Its billed time is that of its `trials`. Its maximum time is that of trials that have not begun: running
    trials are jobs of their own.
    """
    definition, config = found["TrainingJobDefinition"], found["HyperParameterTuningJobConfig"]
    environment, machines = definition.get("Environment", {}), definition["ResourceConfig"]
    begun = sum(found["TrainingJobStatusCounters"].values())
    left = max(0, config["ResourceLimits"].get("MaxNumberOfTrainingJobs", 0) - begun)
    state = _STATES.get(found["HyperParameterTuningJobStatus"], JobState.RUNNING)
    phase = (
        JobPhase.OVER if state.over else JobPhase.ENDING if state is JobState.STOPPING else JobPhase.TRAINING
    )
    listed = list(trials)
    best = found.get("BestTrainingJob", {})
    return ServiceJob(
        name=found["HyperParameterTuningJobName"],
        stack=environment.get("TRAINSTACK_STACK", ""),
        person=environment.get("TRAINSTACK_PERSON", ""),
        team=environment.get("TRAINSTACK_TEAM", ""),
        machine=machines["InstanceType"],
        nodes=machines["InstanceCount"],
        spot=definition.get("EnableManagedSpotTraining", False),
        search=True,
        state=state,
        phase=phase,
        reason=found.get("FailureReason", "") if state is not JobState.COMPLETED else "",
        created=found["CreationTime"],
        ended=found.get("HyperParameterTuningEndTime"),
        max_run_s=left * definition["StoppingCondition"].get("MaxRuntimeInSeconds", 86400),
        trained_s=sum(one.trained_s or 0 for one in listed),
        billed_s=sum(one.billed_s or 0 for one in listed),
        changes=(PhaseChange(found["CreationTime"], phase, _progress(found, begun)),),
        model_uri=next((one.model_uri for one in listed if one.name == best.get("TrainingJobName")), ""),
        checkpoint_uri=definition.get("CheckpointConfig", {}).get("S3Uri", ""),
        experiment=environment.get("MLFLOW_EXPERIMENT_NAME", ""),
        best=_best(best),
    )


def is_of(found: Mapping[str, Any], stack: str) -> bool:
    """Return whether a search belongs to this stack, by the environment of its trials."""
    environment = found.get("TrainingJobDefinition", {}).get("Environment", {})
    return bool(environment.get(STACK_VARIABLE) == stack)


def _progress(found: Mapping[str, Any], begun: int) -> str:
    return f"{begun} trials begun, {found['TrainingJobStatusCounters'].get('Completed', 0)} completed"


def _best(best: Mapping[str, Any]) -> str:
    if not best:
        return ""
    figure = best.get("FinalHyperParameterTuningJobObjectiveMetric", {})
    given = ", ".join(f"{name} {value}" for name, value in sorted(best["TunedHyperParameters"].items()))
    return f"{figure.get('MetricName', '')} {figure.get('Value', 0):g} by {best['TrainingJobName']} ({given})"
