"""List and stop a stack's SageMaker workloads."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agents.budget_stop.decisions import PREFIX, BillableWorkload

_PERSON = f"{PREFIX}:person"
# Error codes for a workload that ended between the listing and the stop.
_ENDED = ("ValidationException", "ResourceNotFound")


def everything(sagemaker: Any, stack: str, teams: Mapping[str, str]) -> list[BillableWorkload]:
    """Tuning and training jobs, apps and endpoints with the stack's tag; `teams` is the team of each person.

    A workload without the tag of a team belongs to the team of its person.
    Tuning jobs come first: one that goes on starts another training job for each that is stopped.
    """
    found = [*_searches(sagemaker), *_jobs(sagemaker), *_apps(sagemaker, teams), *_endpoints(sagemaker)]
    ours = [one for one in found if one.tags.get(f"{PREFIX}:stack") == stack]
    return [replace(one, tags={**_owned(one.tags.get(_PERSON, ""), teams), **one.tags}) for one in ours]


def end(sagemaker: Any, one: BillableWorkload) -> bool:
    """Stop a workload; False when it had ended already. Raises other errors of the service."""
    ways = {
        "tuning-job": sagemaker.stop_hyper_parameter_tuning_job,
        "training-job": sagemaker.stop_training_job,
        "app": sagemaker.delete_app,
        "endpoint": sagemaker.delete_endpoint,
    }
    try:
        ways[one.kind](**one.handle)
    except sagemaker.exceptions.ClientError as error:
        if error.response["Error"]["Code"] not in _ENDED:
            raise
        return False
    return True


def _searches(sagemaker: Any) -> Iterator[BillableWorkload]:
    """Tuning jobs in progress."""
    for page in sagemaker.get_paginator("list_hyper_parameter_tuning_jobs").paginate(
        StatusEquals="InProgress"
    ):
        for row in page["HyperParameterTuningJobSummaries"]:
            name, arn = row["HyperParameterTuningJobName"], row["HyperParameterTuningJobArn"]
            handle = {"HyperParameterTuningJobName": name}
            yield BillableWorkload("tuning-job", name, arn, _tags(sagemaker, arn), handle)


def _jobs(sagemaker: Any) -> Iterator[BillableWorkload]:
    """Training jobs in progress; excludes jobs that are already stopping."""
    pages = sagemaker.get_paginator("list_training_jobs").paginate(StatusEquals="InProgress")
    for page in pages:
        for row in page["TrainingJobSummaries"]:
            name, arn = row["TrainingJobName"], row["TrainingJobArn"]
            handle = {"TrainingJobName": name}
            yield BillableWorkload("training-job", name, arn, _tags(sagemaker, arn), handle)


def _apps(sagemaker: Any, teams: Mapping[str, str]) -> Iterator[BillableWorkload]:
    """Running apps, with tags for their owner where the service did not propagate any."""
    for page in sagemaker.get_paginator("list_apps").paginate():
        for row in page["Apps"]:
            if row["Status"] not in ("InService", "Pending"):
                continue
            keys = ("DomainId", "UserProfileName", "SpaceName", "AppType", "AppName")
            handle = {key: row[key] for key in keys if row.get(key)}
            app = sagemaker.describe_app(**handle)
            owner = row.get("UserProfileName") or _owner(sagemaker, row)
            tags = {**_owned(owner, teams), **_tags(sagemaker, app["AppArn"])}
            tags.setdefault(f"{PREFIX}:stack", _stack(sagemaker, row["DomainId"]))
            yield BillableWorkload("app", f"{owner}/{row['AppName']}", app["AppArn"], tags, handle)


def _endpoints(sagemaker: Any) -> Iterator[BillableWorkload]:
    for page in sagemaker.get_paginator("list_endpoints").paginate(StatusEquals="InService"):
        for row in page["Endpoints"]:
            name, arn = row["EndpointName"], row["EndpointArn"]
            yield BillableWorkload("endpoint", name, arn, _tags(sagemaker, arn), {"EndpointName": name})


def _owner(sagemaker: Any, row: Mapping[str, Any]) -> str:
    space = sagemaker.describe_space(DomainId=row["DomainId"], SpaceName=row["SpaceName"])
    return str(space.get("OwnershipSettings", {}).get("OwnerUserProfileName", ""))


def _owned(owner: str, teams: Mapping[str, str]) -> dict[str, str]:
    """The tags of a person's workload; none without a person."""
    if not owner:
        return {}
    return {_PERSON: owner} | ({f"{PREFIX}:team": teams[owner]} if owner in teams else {})


def _stack(sagemaker: Any, domain: str) -> str:
    arn = sagemaker.describe_domain(DomainId=domain)["DomainArn"]
    return _tags(sagemaker, arn).get(f"{PREFIX}:stack", "")


def _tags(sagemaker: Any, arn: str) -> dict[str, str]:
    pages = sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
    return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
