"""SageMaker for boto3: hyperparameter tuning jobs. Source: botocore 1.44.5 sagemaker/2017-07-24."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of, tagging
from rehearsal.dataplane.aws.http import Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker import job_requests, quotas
from rehearsal.jobs.aws.sagemaker.paging import matching, page
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord
from rehearsal.jobs.aws.sagemaker.studio import sees_account
from rehearsal.jobs.aws.sagemaker.tuning_jobs import TuningJobRecord, TuningJobs

_ARN = re.compile(r"arn:aws:sagemaker:([a-z0-9-]+):(\d{12}):hyper-parameter-tuning-job/(.+)")
_COUNTED = {"InProgress": "InProgress", "Stopping": "InProgress", "Failed": "NonRetryableError"}
_UNKNOWN = ("TrainingJobDefinitions", "WarmStartConfig", "Autotune")


class TuningApi:
    """Creates, describes, stops and lists tuning jobs."""

    def __init__(self, state: State, searches: TuningJobs, limits: Callable[[], Mapping[str, float]]) -> None:
        self._state, self._searches, self._limits = state, searches, limits

    def operations(self) -> Mapping[str, Operation]:
        """See `http.JsonService`."""
        return {
            "CreateHyperParameterTuningJob": self._create,
            "DescribeHyperParameterTuningJob": self._describe,
            "StopHyperParameterTuningJob": self._stop,
            "ListHyperParameterTuningJobs": self._list,
            "ListTrainingJobsForHyperParameterTuningJob": self._list_trials,
        }

    def by_arn(self, request: Request, arn: str) -> TuningJobRecord | None:
        """The tuning job of an ARN; None for ARNs of another kind. Raises ServiceError."""
        match = _ARN.fullmatch(arn)
        if match is None:
            return None
        found = self._searches.get(match[2], match[1], match[3])
        if found is None or not sees_account(request, found.account):
            raise ServiceError("ValidationException", "Requested resource not found.")
        return found

    def _create(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        for message in _unfit(body):
            raise ServiceError("ValidationException", message)
        name, definition = str(body["HyperParameterTuningJobName"]), body["TrainingJobDefinition"]
        role = str(definition["RoleArn"])
        tags = {str(one["Key"]): str(one["Value"]) for one in body.get("Tags") or ()}
        rest = {member: value for member, value in body.items() if member != "Tags"}
        now, account = time.time(), role.split(":")[4]
        search = TuningJobRecord(account, request.region, name, rest, tags, now, now)
        context = {**context_of(request.region), **job_requests.condition_keys(definition, tags)}
        passed = AccessCheck(
            "iam:PassRole",
            role,
            {**context_of(request.region), "iam:PassedToService": "sagemaker.amazonaws.com"},
        )
        created = AccessCheck(f"sagemaker:{request.action}", search.arn, context)
        tagged = tagging(request.region, search.arn, tags, request.action)
        authorise(self._state, request.caller, [created, *tagged, passed])
        job_requests.check(self._state, {**definition, "TrainingJobName": name}, None)
        parallel = int(body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"])
        quotas.check_request(self._limits(), quotas.TRIALS_AT_ONCE, parallel, "Jobs")
        if self._searches.get(account, request.region, name) is not None:
            message = (
                f"A hyperparameter tuning job with the name, {name}, already exists. Choose a different name."
            )
            raise ServiceError("ResourceInUse", message)
        self._searches.start(search)
        return {"HyperParameterTuningJobArn": search.arn}

    def _describe(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        search = self._found(request, body)
        best = self._searches.best(search)
        found = {
            **self._summary(search),
            "HyperParameterTuningJobConfig": search.config,
            "TrainingJobDefinition": search.definition,
            "FailureReason": search.failure or None,
            "BestTrainingJob": self._trial(search, *best) if best else None,
        }
        del found["Strategy"], found["ResourceLimits"]
        return {name: value for name, value in found.items() if value is not None}

    def _stop(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        search = self._found(request, body)
        if search.over:
            what = f"The request was rejected because the tuning job is in status {search.status}."
            raise ServiceError("ValidationException", what)
        self._searches.stop(search)
        return {}

    def _list(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        check = AccessCheck(f"sagemaker:{request.action}", "*", context_of(request.region))
        authorise(self._state, request.caller, [check])
        seen = [one for one in self._searches.all(request.region) if sees_account(request, one.account)]
        rows = [self._summary(one) for one in seen if body.get("StatusEquals") in (None, one.status)]
        by = {
            "Name": "HyperParameterTuningJobName",
            "CreationTime": "CreationTime",
            "Status": "HyperParameterTuningJobStatus",
        }
        ordered = {"SortOrder": "Ascending", **body}  # "The default is Ascending."
        found = page(matching(rows, ordered, "HyperParameterTuningJobName"), ordered, by)
        return {"HyperParameterTuningJobSummaries": found.pop("rows"), **found}

    def _list_trials(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        search = self._found(request, body)
        jobs = [one for one in self._searches.jobs(search) if body.get("StatusEquals") in (None, one.status)]
        rows = [self._trial(search, job, self._searches.figure(search, job)) for job in jobs]
        if body.get("SortBy") == "FinalObjectiveMetricValue":
            raise ServiceError("ValidationException", "A rehearsal sorts trials by name, time and status.")
        by = {"Name": "TrainingJobName", "CreationTime": "CreationTime", "Status": "TrainingJobStatus"}
        found = page(rows, {"SortOrder": "Ascending", **body}, by)
        return {"TrainingJobSummaries": found.pop("rows"), **found}

    def _found(self, request: Request, body: dict[str, Any]) -> TuningJobRecord:
        """The requested tuning job. Raises ServiceError."""
        shapes.check("sagemaker", request.action, body)
        name = str(body["HyperParameterTuningJobName"])
        seen = (one for one in self._searches.all(request.region) if sees_account(request, one.account))
        found = next((one for one in seen if one.name == name), None)
        account = found.account if found else request.caller.account
        arn = f"arn:aws:sagemaker:{request.region}:{account}:hyper-parameter-tuning-job/{name}"
        tags = {f"aws:ResourceTag/{key}": value for key, value in (found.tags if found else {}).items()}
        check = AccessCheck(f"sagemaker:{request.action}", arn, {**context_of(request.region), **tags})
        authorise(self._state, request.caller, [check])
        if found is None:
            raise ServiceError(
                "ResourceNotFound", f"Amazon SageMaker can't find a tuning job with the name {name}."
            )
        return found

    def _summary(self, search: TuningJobRecord) -> dict[str, Any]:
        jobs = self._searches.jobs(search)
        counted = Counter(_COUNTED.get(job.status, job.status) for job in jobs)
        figures = Counter(
            "Pending"
            if not job.over
            else "Failed"
            if self._searches.figure(search, job) is None
            else "Succeeded"
            for job in jobs
        )
        kinds = ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped")
        found = {
            "HyperParameterTuningJobName": search.name,
            "HyperParameterTuningJobArn": search.arn,
            "HyperParameterTuningJobStatus": search.status,
            "Strategy": search.config["Strategy"],
            "CreationTime": search.created,
            "HyperParameterTuningEndTime": search.ended,
            "LastModifiedTime": search.modified,
            "TrainingJobStatusCounters": {kind: counted[kind] for kind in kinds},
            "ObjectiveStatusCounters": {kind: figures[kind] for kind in ("Succeeded", "Pending", "Failed")},
            "ResourceLimits": search.config["ResourceLimits"],
        }
        return {name: value for name, value in found.items() if value is not None}

    def _trial(self, search: TuningJobRecord, job: TrainingJobRecord, value: float | None) -> dict[str, Any]:
        objective = search.config["HyperParameterTuningJobObjective"]
        final = {**objective, "Value": value}
        found = {
            "TrainingJobName": job.name,
            "TrainingJobArn": job.arn,
            "CreationTime": job.created,
            "TrainingStartTime": job.started,
            "TrainingEndTime": job.ended,
            "TrainingJobStatus": job.status,
            "TunedHyperParameters": search.trials[job.name],
            "FailureReason": job.failure or None,
            "FinalHyperParameterTuningJobObjectiveMetric": None if value is None else final,
            "ObjectiveStatus": "Pending" if not job.over else "Failed" if value is None else "Succeeded",
        }
        return {name: value for name, value in found.items() if value is not None}


def _unfit(body: Mapping[str, Any]) -> Iterator[str]:
    """Errors of a request that the service or a rehearsal does not support."""
    config = body["HyperParameterTuningJobConfig"]
    for member in _UNKNOWN:
        if body.get(member):
            yield f"A rehearsal runs tuning jobs of one TrainingJobDefinition, without {member}."
    if not body.get("TrainingJobDefinition"):
        yield "TrainingJobDefinition is required."
        return
    if config["Strategy"] not in ("Bayesian", "Random"):
        yield f"A rehearsal draws settings at random, which is not what {config['Strategy']} does."
    limits, objective = config["ResourceLimits"], config.get("HyperParameterTuningJobObjective")
    if "MaxNumberOfTrainingJobs" not in limits:
        yield "A rehearsal needs MaxNumberOfTrainingJobs."
    elif limits["MaxParallelTrainingJobs"] > limits["MaxNumberOfTrainingJobs"]:
        yield "MaxParallelTrainingJobs must not be more than MaxNumberOfTrainingJobs."
    if not any((config.get("ParameterRanges") or {}).values()):
        yield "ParameterRanges must have at least one range."
    rows = body["TrainingJobDefinition"]["AlgorithmSpecification"].get("MetricDefinitions") or ()
    if objective is None or objective["MetricName"] not in [row["Name"] for row in rows]:
        yield "The objective metric must be one of MetricDefinitions."
