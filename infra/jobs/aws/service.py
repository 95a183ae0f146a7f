"""SageMaker as a job service: training jobs, their logs in CloudWatch, their code in S3.

Untested in a real account: requests and responses are checked against the service models of botocore.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from botocore import exceptions

from infra.clouds.aws.login import DENIED, LOG_IN, Clients, LoggedOutError, code_and_message, logged_in
from infra.errors import Problem, UserError
from infra.jobs.aws import refusals
from infra.jobs.aws.described import STACK_VARIABLE, described
from infra.jobs.aws.logs import CloudWatchLogs
from infra.jobs.aws.search.described import described_search, is_of
from infra.jobs.aws.search.tuning import is_search
from infra.jobs.aws.search.tuning import request as tuning_request
from infra.jobs.service import CallerIdentity, JobState, LostError, Moment, ServiceJob, TuningSpec
from infra.launchers.aws import sagemaker
from infra.launchers.runplan import RunPlan
from infra.naming import TAG_PREFIX

_MISSING = {"404", "NoSuchKey", "NotFound"}
# Codes for a job that does not exist ("Requested resource not found.", DescribeTrainingJob).
_NO_JOB = {"ResourceNotFound", "ResourceNotFoundException"}
_STACK_TAG = f"{TAG_PREFIX}:stack"


class AccessDeniedError(UserError):
    """The login has no permission for the request."""


class SageMakerService:
    """Training jobs of a stack in its region, with the caller's own login. See `service.JobService`."""

    def __init__(self, clients: Clients, stack: str, region: str) -> None:
        self._clients, self._stack, self._region = clients, stack, region
        self._known: dict[str, Any] = {}
        self.unseen = 0

    def caller(self) -> CallerIdentity:
        """The identity of the login."""
        with asked("read the identity of the login"):
            found = self._client("sts").get_caller_identity()
        return CallerIdentity(found["Account"], found["Arn"].rpartition("/")[2])

    def keep(self, uri: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was missing."""
        place = urlsplit(uri)
        where = {"Bucket": place.netloc, "Key": place.path.lstrip("/")}
        s3 = self._client("s3")
        with asked(f"write {uri}"):
            try:
                s3.head_object(**where)
            except exceptions.ClientError as error:
                if code_and_message(error)[0] not in _MISSING:
                    raise
                s3.put_object(**where, Body=content)
                return True
        return False

    def content(self, uri: str) -> bytes:
        """The content of an object."""
        place = urlsplit(uri)
        with asked(f"read {uri}"):
            found = self._client("s3").get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
            return bytes(found["Body"].read())

    def submit(self, plan: RunPlan) -> None:
        """Start a job. Raises UserError, and LostError where the outcome is unknown."""
        request, client = sagemaker.training_job(plan), self._client("sagemaker")
        try:
            with logged_in():
                client.create_training_job(**request)
        except LoggedOutError as error:
            raise UserError([Problem("login", None, str(error), LOG_IN, code="not-logged-in")]) from error
        except exceptions.ClientError as error:
            code, message = code_and_message(error)
            # The SDK retries without a response, and may then find the job of its first request.
            unavailable = _is_unavailable(error)
            if (code == "ResourceInUse" or unavailable) and self._made(request):
                return
            if unavailable:
                raise LostError(f"{code}: {message}") from error
            types = client.meta.service_model.shape_for("TrainingInstanceType").enum
            raise UserError([refusals.of_create(plan, self._region, code, message, types)]) from error
        except exceptions.ParamValidationError as error:
            raise UserError([refusals.of_request("start a job", error)]) from error
        except exceptions.BotoCoreError as error:
            if not self._made(request):
                raise LostError(str(error)) from error

    def search(self, plan: RunPlan, tuning: TuningSpec) -> None:
        """Start a search. Raises UserError, and LostError where the outcome is unknown."""
        request, client = tuning_request(sagemaker.training_job(plan), tuning), self._client("sagemaker")
        types = client.meta.service_model.shape_for("TrainingInstanceType").enum

        def refused(_: str, code: str, message: str) -> Problem:
            return refusals.of_create(plan, self._region, code, message, types)

        with asked("start a search", refused):
            client.create_hyper_parameter_tuning_job(**request)

    def job(self, name: str) -> ServiceJob | None:
        """The job or search of that name, of any person; None if it does not exist."""
        if is_search(name):
            search = self._describe_search(name)
            return None if search is None else described_search(search, self._trials(search))
        found = self._describe(name)
        return None if found is None else described(found)

    def jobs(self, since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:
        """Jobs of the stack that changed since then, newest first; `running`: those that are not over."""
        asked = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}
        asked |= {} if since is None else {"LastModifiedTimeAfter": since}
        self.unseen = 0
        if not running:
            yield from self._listed(asked)
            return
        # In this order, a job that is stopped meanwhile is listed twice and not missed.
        states = ("InProgress", "Stopping")
        found = [job for state in states for job in self._listed({**asked, "StatusEquals": state})]
        by_name = {job.name: job for job in found if not job.state.over}
        yield from sorted(by_name.values(), key=lambda job: job.created, reverse=True)

    def _listed(self, asked: Mapping[str, Any]) -> Iterator[ServiceJob]:
        both = (self._searches(asked), self._training_jobs(asked))
        yield from heapq.merge(*both, key=lambda job: job.created, reverse=True)

    def _searches(self, asked: Mapping[str, Any]) -> Iterator[ServiceJob]:
        """Searches of the stack; none for a login without permission to list them."""
        pages = self._client("sagemaker").get_paginator("list_hyper_parameter_tuning_jobs").paginate(**asked)
        try:
            for name in _names(pages, "HyperParameterTuningJobSummaries", "HyperParameterTuningJobName"):
                found = self._describe_search(name)
                if found is not None and is_of(found, self._stack):
                    yield described_search(found)
        except AccessDeniedError:
            return

    def _training_jobs(self, asked: Mapping[str, Any]) -> Iterator[ServiceJob]:
        pages = self._client("sagemaker").get_paginator("list_training_jobs").paginate(**asked)
        for name in _names(pages, "TrainingJobSummaries", "TrainingJobName"):
            try:
                found = self._describe(name)
            except AccessDeniedError:  # a person may list all jobs, but read only their own
                self.unseen += name.startswith(f"{self._stack}-")
                continue
            if found is None:  # deleted since it was listed
                continue
            tags = self._tags(found)
            if tags is not None:
                yield described(found, tags)

    def stop(self, name: str) -> None:
        """Stop a job or search; no effect on one that is over or stopping."""
        client = self._client("sagemaker")
        try:
            with asked(f"stop {name}"):
                if is_search(name):
                    client.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
                else:
                    client.stop_training_job(TrainingJobName=name)
        except UserError:
            # The service refuses to stop a job that is over or stopping, maybe by another request.
            found = self.job(name)
            if found is None or found.state is JobState.RUNNING:
                raise

    def logs(self, name: str) -> CloudWatchLogs:
        """Log lines of its nodes."""
        streams = f"{name}-" if is_search(name) else f"{name}/"
        return CloudWatchLogs(self._client("logs"), streams, lambda: asked("read logs"))

    def _client(self, service: str) -> Any:
        if service not in self._known:
            self._known[service] = self._clients(service, self._region)
        return self._known[service]

    def _describe(self, name: str) -> Mapping[str, Any] | None:
        with asked(f"read the job {name}"):
            return _unless_missing(self._client("sagemaker").describe_training_job, TrainingJobName=name)

    def _describe_search(self, name: str) -> Mapping[str, Any] | None:
        with asked(f"read the search {name}"):
            return _unless_missing(
                self._client("sagemaker").describe_hyper_parameter_tuning_job,
                HyperParameterTuningJobName=name,
            )

    def _trials(self, search: Mapping[str, Any]) -> Iterator[ServiceJob]:
        """The trials of a search that is over; before, its total is unknown."""
        if search["HyperParameterTuningJobStatus"] not in ("Completed", "Failed", "Stopped"):
            return
        pages = self._client("sagemaker").get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
        asked = pages.paginate(HyperParameterTuningJobName=search["HyperParameterTuningJobName"])
        for name in _names(asked, "TrainingJobSummaries", "TrainingJobName"):
            if (found := self._describe(name)) is not None:
                yield described(found)

    def _made(self, request: Mapping[str, Any]) -> bool:
        """Return whether the service has a job of exactly this request."""
        try:
            found = self._describe(request["TrainingJobName"])
        except (UserError, LostError):
            return False
        same = ("Environment", "RoleArn", "InputDataConfig")
        return found is not None and all(found.get(key) == request[key] for key in same)

    def _tags(self, found: Mapping[str, Any]) -> dict[str, str] | None:
        """Tags of a job, where its environment does not name its stack; None for a job of another stack."""
        stack = found.get("Environment", {}).get(STACK_VARIABLE)
        if stack is not None:
            return {} if stack == self._stack else None
        client = self._client("sagemaker")
        with asked("read tags of jobs"):
            pages = client.get_paginator("list_tags").paginate(ResourceArn=found["TrainingJobArn"])
            tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        return tags if tags.get(_STACK_TAG) == self._stack else None


def _names(pages: Any, rows: str, name: str) -> Iterator[str]:
    """Names of listed jobs, page by page; `rows` and `name` are fields of the response."""
    rest = iter(pages)
    while True:
        with asked("list jobs"):
            page = next(rest, None)
        if page is None:
            return
        yield from (row[name] for row in page[rows])


def _unless_missing(describe: Callable[..., Mapping[str, Any]], **asked: str) -> Mapping[str, Any] | None:
    try:
        return describe(**asked)
    except exceptions.ClientError as error:
        code, message = code_and_message(error)
        if code in _NO_JOB or (code == "ValidationException" and "not found" in message.lower()):
            return None
        raise


def _is_unavailable(error: exceptions.ClientError) -> bool:
    """Return whether the same request may succeed later."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code_and_message(error)[0] in refusals.UNAVAILABLE or status >= 500


@contextmanager
def asked(what: str, refused: Callable[[str, str, str], Problem] = refusals.of_other) -> Iterator[None]:
    """Raise UserError for a refused request within, LostError without a response."""
    try:
        with logged_in():
            yield
    except LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), LOG_IN, code="not-logged-in")]) from error
    except exceptions.ClientError as error:
        code, message = code_and_message(error)
        if _is_unavailable(error):
            raise LostError(f"{code}: {message}") from error
        kind = AccessDeniedError if code in DENIED else UserError
        raise kind([refused(what, code, message)]) from error
    except exceptions.ParamValidationError as error:
        raise UserError([refusals.of_request(what, error)]) from error
    except exceptions.BotoCoreError as error:
        raise LostError(str(error)) from error
