"""Training plans: capacity bought in advance, declared to a rehearsal with `rehearse seed`.

    - type: aws:sagemaker/trainingPlan:TrainingPlan
      id: arn:aws:sagemaker:us-west-2:123456789012:training-plan/december
      outputs: {status: Active, instanceType: ml.p5.48xlarge, targetResources: [training-job]}

Source: SageMaker developer guide, "Training plans utilization for SageMaker training jobs" (a plan must be
Scheduled or Active; jobs wait for the capacity) and "View training plan details" (jobs are Pending until the
plan is Active); botocore 1.44.5 sagemaker/2017-07-24 CreateTrainingJob (ResourceNotFound),
DescribeTrainingPlan (TargetResources), InstancePreference ("The plan's instance type must match"). The texts
of errors are ours. Not checked: how many machines a plan has, when it ends, the right to its capacity.

DescribeTrainingPlan returns the outputs of the seeded plan: `startTime` and `endTime` (RFC 3339),
`totalInstanceCount`, `upfrontFee`, and one reserved capacity of them all. What is not seeded is absent.
"""

import datetime
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker.studio import sees

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


class PlansApi:
    """Describes training plans."""

    def __init__(self, state: State) -> None:
        self._state = state

    def operations(self) -> Mapping[str, Operation]:
        """See `http.JsonService`."""
        return {"DescribeTrainingPlan": self._describe}

    def _describe(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        name = str(body["TrainingPlanName"])
        arn = f"arn:aws:sagemaker:{request.region}:{request.caller.account}:training-plan/{name}"
        check = AccessCheck(f"sagemaker:{request.action}", arn, context_of(request.region))
        authorise(self._state, request.caller, [check])
        plan = next(
            (
                one
                for one in self._state.find(type=TYPE)
                if sees(request, one) and str(one.outputs.get("arn")).rpartition("/")[2] == name
            ),
            None,
        )
        if plan is None:
            raise ServiceError("ResourceNotFound", f"Training plan {name} does not exist.")
        return _described(name, plan.outputs)


def _described(name: str, seeded: Mapping[str, Any]) -> dict[str, Any]:
    times = {
        member: datetime.datetime.fromisoformat(str(seeded[key])).timestamp()
        for key, member in (("startTime", "StartTime"), ("endTime", "EndTime"))
        if seeded.get(key)
    }
    count = int(seeded.get("totalInstanceCount") or 0)
    arn, status = str(seeded["arn"]), str(seeded.get("status"))
    part = {
        "ReservedCapacityArn": arn.replace(":training-plan/", ":reserved-capacity/"),
        "InstanceType": seeded.get("instanceType"),
        "TotalInstanceCount": count,
        "Status": status,
        **times,
    }
    found: dict[str, Any] = {
        "TrainingPlanArn": arn,
        "TrainingPlanName": name,
        "Status": status,
        "TargetResources": list(seeded.get("targetResources") or ()),
        "TotalInstanceCount": count,
        "ReservedCapacitySummaries": [part],
        **times,
    }
    if seeded.get("upfrontFee") is not None:
        found |= {"UpfrontFee": str(seeded["upfrontFee"]), "CurrencyCode": "USD"}
    return found
