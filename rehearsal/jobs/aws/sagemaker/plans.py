"""Training plans: capacity bought in advance, declared to a rehearsal with `rehearse seed`.

    - type: aws:sagemaker/trainingPlan:TrainingPlan
      id: arn:aws:sagemaker:us-west-2:123456789012:training-plan/december
      outputs: {status: Active, instanceType: ml.p5.48xlarge, targetResources: [training-job]}

Source: SageMaker developer guide, "Training plans utilization for SageMaker training jobs" (a plan must be
Scheduled or Active; jobs wait for the capacity) and "View training plan details" (jobs are Pending until the
plan is Active); botocore 1.44.5 sagemaker/2017-07-24 CreateTrainingJob (ResourceNotFound),
DescribeTrainingPlan (TargetResources), InstancePreference ("The plan's instance type must match"). The texts
of errors are ours. Not checked: how many machines a plan has, when it ends, the right to its capacity.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.http import ServiceError

TYPE = "aws:sagemaker/trainingPlan:TrainingPlan"


def check(state: State, request: Mapping[str, Any]) -> None:
    """Raise ServiceError when a job may not use the training plan that it names."""
    resources = request.get("ResourceConfig") or {}
    arn = resources.get("TrainingPlanArn")
    if not arn:
        return
    plan = _plan(state, str(arn))
    if plan is None:
        raise ServiceError("ResourceNotFound", f"Training plan {arn} does not exist.")
    described, machine = plan.outputs, resources.get("InstanceType")
    if described.get("status") not in ("Active", "Scheduled"):
        what = f"is {described.get('status')}; it must be Scheduled or Active"
    elif "training-job" not in (described.get("targetResources") or ()):
        what = f"is for {described.get('targetResources')}, not for training jobs"
    elif described.get("instanceType") != machine:
        what = f"reserves {described.get('instanceType')}, not {machine}"
    else:
        return
    raise ServiceError("ValidationException", f"Training plan {arn} {what}.")


def begun(state: State, request: Mapping[str, Any]) -> bool:
    """Return whether a job has no plan, or one whose capacity is active."""
    arn = (request.get("ResourceConfig") or {}).get("TrainingPlanArn")
    plan = _plan(state, str(arn)) if arn else None
    return plan is None or plan.outputs.get("status") == "Active"


def _plan(state: State, arn: str) -> Record | None:
    return next((one for one in state.issued(arn) if one.type == TYPE), None)
