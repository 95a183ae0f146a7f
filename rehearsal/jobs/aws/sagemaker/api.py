"""SageMaker for boto3: training jobs, tags, apps and endpoints.

Source: SageMaker API Reference and botocore 1.44.5 sagemaker/2017-07-24.
"""

import re
import time
from collections.abc import Mapping
from typing import Any, Protocol

from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of, tagging
from rehearsal.dataplane.aws.http import JsonService, Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker import job_requests, quotas
from rehearsal.jobs.aws.sagemaker.descriptions import described, summary
from rehearsal.jobs.aws.sagemaker.endpoints import EndpointsApi
from rehearsal.jobs.aws.sagemaker.paging import matching, page
from rehearsal.jobs.aws.sagemaker.plans import PlansApi
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord, TrainingJobStore
from rehearsal.jobs.aws.sagemaker.studio import Studio, sees_account
from rehearsal.jobs.aws.sagemaker.tuning_api import TuningApi
from rehearsal.jobs.faults import CreateFaults, JobFaults

_JOB_ARN = re.compile(r"arn:aws:sagemaker:([a-z0-9-]+):(\d{12}):training-job/(.+)")
TYPE = "aws:sagemaker/trainingJob:TrainingJob"
_REFUSALS = {
    "throttling": ServiceError("ThrottlingException", "Rate exceeded"),
    "transient": ServiceError("InternalFailure", "internal failure", 500),
    "quota": ServiceError(
        "ResourceLimitExceeded", "The account-level service limit for training jobs has been reached."
    ),
}
_TAGS_AT_ONCE = 50  # source: botocore 1.44.5, ListTagsInput$MaxResults


class TrainingJobControl(Protocol):
    """Runs training jobs."""

    def begin(self, job: TrainingJobRecord, met: CreateFaults) -> None:
        """Start a new job."""

    def stop_job(self, job: TrainingJobRecord) -> None:
        """Stop a running job."""

    def retag(self, job: TrainingJobRecord, tags: Mapping[str, str]) -> None:
        """Replace the tags of a job."""


class SageMakerApi(JsonService):
    """See `http.JsonService`."""

    target = "SageMaker"

    def __init__(self, state: State, jobs: TrainingJobControl, faults: JobFaults, tuning: TuningApi) -> None:
        self._state, self._jobs, self._faults, self._tuning = state, jobs, faults, tuning
        self._store, self._owned = TrainingJobStore(state), EndpointsApi(state)

    def operations(self) -> Mapping[str, Operation]:
        """See `http.JsonService`."""
        return {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "ListTrainingJobs": self._list,
            "ListTags": self._list_tags,
            "AddTags": self._add_tags,
            **self._tuning.operations(),
            **self._owned.operations(),
            **PlansApi(self._state).operations(),
            **Studio(self._state, self._faults.quotas).operations(),
        }

    def _create(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        name, role = str(body["TrainingJobName"]), str(body["RoleArn"])
        account = role.split(":")[4]
        tags = {str(one["Key"]): str(one["Value"]) for one in body.get("Tags") or ()}
        now = time.time()
        rest = {member: value for member, value in body.items() if member != "Tags"}
        job = TrainingJobRecord(account, request.region, name, rest, tags, now, now)
        context = context_of(request.region)
        passed = AccessCheck(
            "iam:PassRole", role, {**context, "iam:PassedToService": "sagemaker.amazonaws.com"}
        )
        known = {**context, **job_requests.condition_keys(body, tags)}
        # A plan is a second resource of the request ("IAM for SageMaker training plans").
        plan = (body.get("ResourceConfig") or {}).get("TrainingPlanArn")
        named = [job.arn, *([str(plan)] if plan else [])]
        created = [AccessCheck("sagemaker:CreateTrainingJob", arn, known) for arn in named]
        tagged = tagging(request.region, job.arn, tags, request.action)
        authorise(self._state, request.caller, [*created, *tagged, passed])
        job_requests.check(self._state, body, self._store.get(account, request.region, name))
        running = [one for one in self._store.all(request.region) if one.account == account and not one.over]
        local = job_requests.local_storage_gb(str(body["ResourceConfig"]["InstanceType"]))
        quotas.check_job(body, running, self._faults.quotas(), local)
        self._jobs.begin(job, self._faults.create(job.arn, name, _REFUSALS))
        return {"TrainingJobArn": job.arn}

    def _describe(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        return described(self._job(request, body))

    def _stop(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        job = self._job(request, body)
        if job.over:
            raise ServiceError(
                "ValidationException",
                f"The request was rejected because the training job is in status {job.status}.",
            )
        self._jobs.stop_job(job)
        return {}

    def _list(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        authorise(
            self._state,
            request.caller,
            [AccessCheck("sagemaker:ListTrainingJobs", "*", context_of(request.region))],
        )
        seen = [job for job in self._store.all(request.region) if sees_account(request, job.account)]
        wanted = body.get("StatusEquals")
        plan = body.get("TrainingPlanArnEquals")
        seen = [job for job in seen if plan in (None, job.request["ResourceConfig"].get("TrainingPlanArn"))]
        rows = [summary(job) for job in seen if wanted in (None, job.status)]
        if body.get("WarmPoolStatusEquals"):
            rows = []  # not stored here
        by = {
            "CreationTime": "CreationTime",
            "Name": "TrainingJobName",
            "Status": "TrainingJobStatus",
        }
        found = page(matching(rows, body, "TrainingJobName"), body, by)
        return {"TrainingJobSummaries": found.pop("rows"), **found}

    def _list_tags(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        arn = str(body["ResourceArn"])
        job = self._by_arn(request, arn) or self._tuning.by_arn(request, arn)
        tags = dict(job.tags) if job else self._owned.tags(request, arn)
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        start, most = int(body.get("NextToken") or 0), int(body.get("MaxResults") or _TAGS_AT_ONCE)
        more = {"NextToken": str(start + most)} if start + most < len(rows) else {}
        return {"Tags": rows[start : start + most], **more}

    def _add_tags(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        arn = str(body["ResourceArn"])
        job = self._by_arn(request, arn)
        if job is None:
            raise ServiceError(
                "ValidationException", f"A rehearsal adds tags to training jobs only, not {arn}"
            )
        given = {str(one["Key"]): str(one["Value"]) for one in body["Tags"]}
        authorise(self._state, request.caller, tagging(request.region, arn, given))
        tags = {**job.tags, **given}
        self._jobs.retag(job, tags)
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _job(self, request: Request, body: dict[str, Any]) -> TrainingJobRecord:
        """The requested job. Raises ServiceError."""
        name = str(body["TrainingJobName"])
        found = next(
            (
                job
                for job in self._store.all(request.region)
                if job.name == name and sees_account(request, job.account)
            ),
            None,
        )
        account = found.account if found else request.caller.account
        arn = f"arn:aws:sagemaker:{request.region}:{account}:training-job/{name}"
        tags = {f"aws:ResourceTag/{key}": value for key, value in (found.tags if found else {}).items()}
        check = AccessCheck(f"sagemaker:{request.action}", arn, {**context_of(request.region), **tags})
        authorise(self._state, request.caller, [check])
        if found is None:
            raise ServiceError("ValidationException", "Requested resource not found.")
        return found

    def _by_arn(self, request: Request, arn: str) -> TrainingJobRecord | None:
        check = AccessCheck(f"sagemaker:{request.action}", arn, context_of(request.region))
        authorise(self._state, request.caller, [check])
        match = _JOB_ARN.fullmatch(arn)
        if match is None:
            return None
        found = self._store.get(match[2], match[1], match[3])
        if found is None or not sees_account(request, found.account):
            raise ServiceError("ValidationException", "Requested resource not found.")
        return found
