"""Errors of SageMaker and S3 as problems with a fix (pure).

Codes and texts are from the API references. Other codes are shown unchanged.
"""

import difflib
import re
from collections.abc import Sequence

from infra.catalog.aws.jobs import quota_name
from infra.clouds.aws.login import DENIED
from infra.errors import Problem
from smoke_training.launchers.runplan import RunPlan

# The service is unavailable or throttles; the request may be retried ("Common Error Types").
UNAVAILABLE = {
    *(
        "InternalFailure",
        "InternalServerError",
        "InternalError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    ),
    *("SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException"),
}
_RIGHTS = "Request this permission from the administrator of the stack; docs/how-to/jobs.md lists all."


def of_create(plan: RunPlan, region: str, code: str, message: str, types: Sequence[str]) -> Problem:
    """The reason why the service created no job; `types` are the machine types of the service."""
    machine = f"ml.{plan.instance_type}"
    if code == "ResourceLimitExceeded":
        return _quota(plan, region, message)
    if code == "ResourceInUse":
        rule = "another run of this person and folder has just got this name"
        return Problem("run", plan.name, rule, "Start it again.", code="run-name-taken")
    if "instancetype" in message.replace(" ", "").lower() and code == "ValidationException":
        near = [one for one in difflib.get_close_matches(machine, types, n=4) if one != machine]
        like = f" Near it are {', '.join(near)}." if near else ""
        fix = f"Change the machine in the stack file, and run trainstack up.{like}"
        rule = f"the service has no such machine type for training in {region}"
        return Problem("--on", machine, rule, fix, code="machine-not-at-service")
    if code in DENIED:
        return Problem("login", None, f"may not start a job: {message}", _RIGHTS, code="start-denied")
    if code == "ResourceNotFound":
        rule, fix = f"a resource is missing: {message}", "Run trainstack up."
        return Problem("run", None, rule, fix, code="resource-missing")
    rule, fix = f"the service refuses it: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("run", None, rule, fix, code="start-refused")


def of_other(what: str, code: str, message: str) -> Problem:
    """The reason why the service refused another request, named by `what`."""
    if code in DENIED or code in ("403", "Forbidden"):
        return Problem("login", None, f"may not {what}: {message}", _RIGHTS, code="request-denied")
    if code == "NoSuchBucket":
        rule, fix = f"cannot {what}: the bucket is gone", "Run trainstack up."
        return Problem("stack", None, rule, fix, code="bucket-missing")
    rule, fix = f"cannot {what}: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("service", None, rule, fix, code="request-refused")


def _quota(plan: RunPlan, region: str, message: str) -> Problem:
    spot = plan.sagemaker is not None and plan.sagemaker.spot
    found = re.search(r"service limit '([^']+)' is ([\d.]+)", message)
    name = found[1] if found else quota_name(f"ml.{plan.instance_type}", "spot" if spot else "on_demand")
    limit = f"{float(found[2]):g}" if found else "used up"
    code = (
        f"aws service-quotas list-service-quotas --service-code sagemaker --region {region} "
        f"--query \"Quotas[?QuotaName=='{name}'].QuotaCode\" --output text"
    )
    ask = (
        "aws service-quotas request-service-quota-increase --service-code sagemaker "
        f"--region {region} --desired-value {plan.nodes} --quota-code CODE"
    )
    rule = f"the account's quota “{name}” is {limit} in {region}, and the run needs {plan.nodes}"
    other = "without --spot" if spot else "with --spot"
    fix = f"Request more, which takes hours to days: get CODE with `{code}`, then run `{ask}`."
    fix = f"{fix} Another machine, or this one {other}, has a quota of its own."
    return Problem("quota", None, rule, fix, code="quota-exceeded")


def _short(message: str) -> str:
    """The message without the list of allowed values."""
    text = re.sub(r"enum value set: \[[^\]]*\]?", "enum value set", message)
    return text if len(text) < 600 else f"{text[:600]} ..."
