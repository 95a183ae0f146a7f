"""Checks for stacks without a cluster: zones, training plans, the log groups of the account."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.jobs.aws.account_logs import GROUPS
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_SERVICE = "sagemaker"


def zones(account: Account) -> Iterator[Answer]:
    """Every zone exists in the account and is available."""
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    found = account.client("ec2").describe_availability_zones(Filters=filters)["AvailabilityZones"]
    usable = [zone["ZoneName"] for zone in found if zone["State"] == "available"]
    missing = [zone for zone in account.layout.zones if zone not in usable]
    for zone in missing:
        fix = f"This account has {', '.join(usable)}."
        yield Answer("zones", State.SHORT, f"{zone} is not available to this account", fix)
    if not missing:
        yield Answer("zones", State.READY, ", ".join(account.layout.zones))


def plans(account: Account) -> Iterator[Answer]:
    """Each training plan can be used by training jobs, now or when it begins, and holds the largest one.

    Developer guide, "Training plans utilization for SageMaker training jobs": jobs may name a plan that is
    Scheduled or Active, and are ended half an hour before its capacity ends.
    """
    layout = account.layout
    assert isinstance(layout, SmallLayout)
    for index, one in enumerate(layout.machines):
        if one.reservation is not None:
            yield _plan(account, f"layout.machines[{index}]", one, one.reservation)


def _plan(account: Account, path: str, one: JobMachineSpec, arn: str) -> Answer:
    name = arn.rpartition("/")[2]
    absent = ("ResourceNotFound", "ResourceNotFoundException")
    found = account.found(_SERVICE, "describe_training_plan", *absent, TrainingPlanName=name)
    if found is None:
        fix = "Correct purchase.arn; `aws sagemaker list-training-plans` lists yours."
        return Answer("job-plans", State.SHORT, f"{path}: the plan {name} does not exist here", fix)
    wrong = list(_unusable(one, found))
    fix = "Name another plan, or buy one: `aws sagemaker search-training-plan-offerings`."
    if wrong:
        return Answer("job-plans", State.SHORT, f"{path}: the plan {name} {'; '.join(wrong)}", fix)
    until = found.get("EndTime")
    end = f", until {until:%Y-%m-%d %H:%M} UTC" if until else ""
    return Answer("job-plans", State.READY, f"{path}: the plan {name} is {found['Status']}{end}")


def _unusable(one: JobMachineSpec, found: Mapping[str, Any]) -> Iterator[str]:
    if found["Status"] not in ("Active", "Scheduled"):
        yield f"is {found['Status']}"
    if "training-job" not in found.get("TargetResources", ()):
        yield f"is for {', '.join(found.get('TargetResources', ())) or 'nothing'}, not for training jobs"
    types = {row["InstanceType"] for row in found.get("ReservedCapacitySummaries", ())}
    if one.machine not in types:
        yield f"holds {', '.join(sorted(types)) or 'no machine'}, not {one.machine}"
    if (total := found.get("TotalInstanceCount", 0)) < one.max_nodes:
        yield f"has {total} machines, and a job may have {one.max_nodes}"


def log_groups(account: Account) -> Iterator[Answer]:
    """Retention and key of the groups in which jobs and notebooks log.

    An account has one of each in a region, so no stack sets them. SageMaker creates them with the first job
    and notebook; logs are then kept forever.
    """
    for name in GROUPS:
        found = account.log_group(name)
        where = f"--region {account.spec.region} --log-group-name {name}"
        days = account.spec.data.log_retention_days
        keep = f"aws logs put-retention-policy {where} --retention-in-days {days}"
        if found is None:
            text = f"SageMaker will create the log group {name} of this account, which keeps logs forever"
            yield Answer("job-logs", State.NOTE, text, f"aws logs create-log-group {where} && {keep}")
        elif "retentionInDays" not in found:
            text = f"the log group {name} of this account keeps the logs of all its stacks forever"
            yield Answer("job-logs", State.NOTE, text, keep)
        else:
            key = found.get("kmsKeyId", "a key of CloudWatch Logs")
            text = f"{name} keeps logs for {found['retentionInDays']} days, encrypted with {key}"
            yield Answer("job-logs", State.READY, text)
